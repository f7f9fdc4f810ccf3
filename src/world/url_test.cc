#include "world/url.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

TEST(HttpUrl, KeepsSecretsApart) {
  const auto url = parse_http_url("https://me:p%40ss@host:8443/a/b.safetensors?X-Signature=abc#part");
  ASSERT_TRUE(url) << url.error().message();
  EXPECT_EQ(url->sent, "https://host:8443/a/b.safetensors?X-Signature=abc");
  EXPECT_EQ(url->shown, "https://host:8443/a/b.safetensors");
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "p@ss");
}

TEST(HttpUrl, SendsThePathAsItIs) {
  EXPECT_EQ(parse_http_url("http://h/a/../b//c")->sent, "http://h/a/../b//c");
  EXPECT_EQ(parse_http_url("http://h/a b")->sent, "http://h/a%20b");
  EXPECT_EQ(parse_http_url("HTTP://h/x")->sent, "http://h/x");
  EXPECT_EQ(parse_http_url("http://[::1]:80/x%20y")->sent, "http://[::1]:80/x%20y");
}

TEST(HttpUrl, RefusesWhatIsNone) {
  for (const char* bad : {"", "ftp://h/x", "http://", "http://h:99999999/x", "http://h/a\r\nHost: b", "http:/h"}) {
    const auto url = parse_http_url(bad);
    ASSERT_FALSE(url) << bad;
    EXPECT_EQ(url.error().code(), Code::BadInput) << bad;
  }
  EXPECT_EQ(parse_http_url("http://me:secret@h:bad/x").error().message().find("secret"), std::string::npos);
}

TEST(S3Name, IsABucketAndAKeyAsTheyStand) {
  const auto name = parse_s3_name("s3://models/a dir/50%25 ü");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->bucket, "models");
  EXPECT_EQ(name->key, "a dir/50%25 ü");
  EXPECT_EQ(parse_s3_name("s3://models")->key, "");
}

TEST(S3Name, RefusesWhatNoBucketIsCalled) {
  for (const std::string bad : {"s3://", "s3:///key", "s3://a b/key", "s3://a@b/key", "s3://a/b\nc", "S4://a/b"}) {
    EXPECT_FALSE(parse_s3_name(bad)) << bad;
  }
  EXPECT_FALSE(parse_s3_name("s3://a/" + std::string(1025, 'k')));
}

TEST(PercentEncoding, LeavesOnlyWhatSignaturesLeave) {
  EXPECT_EQ(percent_encoded("a-b_c.d~/e f+ü", true), "a-b_c.d~/e%20f%2B%C3%BC");
  EXPECT_EQ(percent_encoded("a/b=", false), "a%2Fb%3D");
}

}  // namespace
}  // namespace holdfast::world
