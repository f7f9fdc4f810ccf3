#include "world/locations.h"

#include <gtest/gtest.h>

#include "world/real_fixture.h"
#include "world/real_world.h"

namespace holdfast::world {
namespace {

Result<RemoteSettings> settings_of(const std::map<std::string, std::string>& environment) {
  return remote_settings([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(RemoteSettings, ComeFromTheEnvironment) {
  const auto settings = settings_of({{"AWS_ENDPOINT_URL", "http://a"},
                                     {"AWS_ENDPOINT_URL_S3", "http://b"},
                                     {"AWS_ACCESS_KEY_ID", "id"},
                                     {"AWS_SECRET_ACCESS_KEY", "secret"},
                                     {"AWS_SESSION_TOKEN", "token"},
                                     {"AWS_REGION", "eu-north-1"},
                                     {"HOLDFAST_REMOTE_CONNECTIONS", "3"},
                                     {"HOLDFAST_REMOTE_STALL_S", "7"},
                                     {"HOLDFAST_REMOTE_TRIES", "2"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->s3.endpoint, "http://b");
  EXPECT_EQ(settings->s3.keys->key_id, "id");
  EXPECT_EQ(settings->s3.keys->session_token, "token");
  EXPECT_EQ(settings->s3.region, "eu-north-1");
  EXPECT_EQ(settings->files.ranges.connections, 3U);
  EXPECT_EQ(settings->http.stall, std::chrono::seconds(7));
  EXPECT_EQ(settings->http.retry.tries_max, 2U);
}

TEST(RemoteSettings, AreNotSignedForWithoutKeys) {
  EXPECT_FALSE(settings_of({})->s3.keys);
  EXPECT_EQ(settings_of({})->s3.region, "us-east-1");
}

TEST(RemoteSettings, RefuseWhatIsNoNumberAndHalfAKey) {
  for (const char* bad : {"0", "-1", "x", "9999999"}) {
    const auto settings = settings_of({{"HOLDFAST_REMOTE_CONNECTIONS", bad}});
    ASSERT_FALSE(settings);
    EXPECT_NE(settings.error().message().find("HOLDFAST_REMOTE_CONNECTIONS"), std::string::npos);
  }
  EXPECT_FALSE(settings_of({{"AWS_ACCESS_KEY_ID", "id"}}));
}

TEST(Secrets, AreLeftOutOfWhatIsShown) {
  const std::string url = "https://me:pw@h/x?sig=1";
  EXPECT_EQ(shown_location(url), "https://h/x");
  EXPECT_EQ(without_secrets("load " + url + ": bad, " + url, url), "load https://h/x: bad, https://h/x");
  EXPECT_EQ(shown_location("http://me:pw@h:bad/x"), "http://...");
  EXPECT_EQ(shown_location("/a/b?c"), "/a/b?c");
  EXPECT_EQ(without_secrets("s3://b/k?x: no", "s3://b/k?x"), "s3://b/k?x: no");
}

TEST(S3Request, GoesToTheEndpointByPathAndToAmazonByHost) {
  const auto sent = [](S3Settings settings, const std::string& bucket) {
    return s3_request(settings, "GET", bucket, "a b", "x=1")->url.sent;
  };
  EXPECT_EQ(sent({"http://h:1", {}, ""}, "buck"), "http://h:1/buck/a%20b?x=1");
  EXPECT_EQ(sent({"http://h:1/", {}, ""}, "buck"), "http://h:1/buck/a%20b?x=1");
  EXPECT_EQ(sent({"", {}, "eu-north-1"}, "buck"), "https://buck.s3.eu-north-1.amazonaws.com/a%20b?x=1");
  EXPECT_EQ(sent({}, "bu.ck"), "https://s3.us-east-1.amazonaws.com/bu.ck/a%20b?x=1");
  EXPECT_FALSE(s3_request({"ftp://h", {}, ""}, "GET", "b", "k", ""));
  EXPECT_FALSE(s3_request({"http://h?q=1", {}, ""}, "GET", "b", "k", ""));
}

TEST(Locations, SendAllOtherNamesToTheDisk) {
  const TempDir dir;
  const auto world = make_real_world();
  Locations locations(world->disk(), world->random(), {});
  const Pieces pieces{.head = 0, .piece = locations.piece_bytes(dir.path("f"), 5), .total = 5};
  auto file = locations.begin(dir.path("f"), ".aside", pieces);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE((*file)->write(0, as_bytes("hello")));
  ASSERT_TRUE((*file)->commit());
  Bytes read(5);
  ASSERT_TRUE((*locations.open(dir.path("f")))->read_at(0, read));
  EXPECT_EQ(as_text(read), "hello");
}

TEST(Locations, WriteNothingOverPlainHttp) {
  const auto world = make_real_world();
  Locations locations(world->disk(), world->random(), {});
  const auto file = locations.begin("https://me:pw@h/x?s=1", "", {.head = 0, .piece = 1, .total = 1});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::BadInput);
  EXPECT_EQ(file.error().message(), "https://h/x: can't write there; save to a path or to s3://bucket/key");
}

}  // namespace
}  // namespace holdfast::world
