#include "app/command_line.h"

#include <gtest/gtest.h>

namespace holdfast::app {
namespace {

using Words = std::vector<std::string>;

TEST(CommandLine, AScriptRunsInOurPython) {
  auto program = find_program({"train.py", "--lr", "1"}, false, "py");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->interpreter, "py");
  EXPECT_EQ(program->command, (Words{"train.py", "--lr", "1"}));
}

TEST(CommandLine, TheFirstWordIsThePythonThatRuns) {
  auto program = find_program({"--", "/opt/bin/python3.11", "-u", "train.py", "a"}, false, "py");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->interpreter, "/opt/bin/python3.11");
  EXPECT_EQ(program->command, (Words{"train.py", "a"}));
  program = find_program({"python", "-m", "pkg.train"}, false, "py");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->command, (Words{"-m", "pkg.train"}));
}

TEST(CommandLine, AModuleIsToldByItsFlag) {
  auto program = find_program({"pkg.train", "a"}, true, "py");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->command, (Words{"-m", "pkg.train", "a"}));
}

TEST(CommandLine, AnythingElseIsAProgram) {
  auto program = find_program({"bash", "train.sh"}, false, "py");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->interpreter, "");
  EXPECT_EQ(program->command, (Words{"bash", "train.sh"}));
  EXPECT_EQ(find_program({"python", "-O", "train.py"}, false, "py")->interpreter, "");
}

TEST(CommandLine, MistakesAreNamed) {
  EXPECT_NE(find_program({}, false, "py").error().message().find("nothing to run"), std::string::npos);
  EXPECT_NE(find_program({"--nproc", "4"}, false, "py").error().message().find("unknown option --nproc"),
            std::string::npos);
}

}  // namespace
}  // namespace holdfast::app
