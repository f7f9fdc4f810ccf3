#include "world/os_error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace holdfast::world {
namespace {

TEST(OsError, NamesWhatWasTouchedAndWhy) {
  EXPECT_EQ(os_error(ENOENT, "/ckpt").message(), "/ckpt: No such file or directory");
}

TEST(OsError, TellsApartWhatACallerCanActOn) {
  for (const int number : {ENOSPC, EDQUOT, EIO, EMFILE, EADDRINUSE}) {
    EXPECT_EQ(os_error(number, "x").code(), Code::Unavailable) << number;
  }
  EXPECT_EQ(os_error(ENOENT, "x").code(), Code::NotFound);
  EXPECT_EQ(os_error(EACCES, "x").code(), Code::Denied);
  EXPECT_EQ(os_error(EISDIR, "x").code(), Code::Internal);
}

TEST(OsError, SurvivesANumberTheSystemDoesNotKnow) {
  EXPECT_EQ(os_error(99999, "x").message(), "x: system error 99999");
}

}  // namespace
}  // namespace holdfast::world
