#include "world/http_judge.h"

#include <gtest/gtest.h>

namespace holdfast::world {
namespace {

using Then = HttpVerdict::Then;

HttpTry answered(int status, const std::string& body = "") {
  HttpTry attempt;
  attempt.head.take("HTTP/1.1 " + std::to_string(status) + " Text");
  attempt.refusal = body;
  return attempt;
}

TEST(JudgeTry, TellsWhatPassesFromWhatStays) {
  for (const int status : {408, 425, 429, 500, 502, 503, 504}) {
    EXPECT_EQ(judge_try(answered(status), "f").then, Then::Retry) << status;
  }
  for (const int status : {300, 304, 400, 401, 403, 404, 405, 412, 416, 501, 505}) {
    EXPECT_EQ(judge_try(answered(status), "f").then, Then::Fail) << status;
  }
  EXPECT_EQ(judge_try(answered(200), "f").then, Then::Done);
}

TEST(JudgeTry, GivesEachRefusalItsKind) {
  const std::pair<int, Code> kinds[] = {{401, Code::Denied},      {403, Code::Denied},     {404, Code::NotFound},
                                        {410, Code::NotFound},    {412, Code::Conflict},   {400, Code::Internal},
                                        {429, Code::Unavailable}, {503, Code::Unavailable}};
  for (const auto& [status, code] : kinds) EXPECT_EQ(judge_try(answered(status), "f").why->code(), code) << status;
}

TEST(JudgeTry, NamesPlaceStatusAndTheCodeOfS3) {
  const auto verdict = judge_try(
      answered(403, "<Error><Code>SignatureDoesNotMatch</Code><Message>No\nway</Message></Error>"), "s3://b/k");
  EXPECT_EQ(verdict.why->message(), "s3://b/k: access denied (HTTP 403, SignatureDoesNotMatch: No way)");
}

TEST(JudgeTry, WaitsAsLongAsItIsAsked) {
  HttpTry attempt = answered(503);
  attempt.head.take("Retry-After: 4");
  EXPECT_EQ(judge_try(attempt, "f").asked_wait, std::chrono::seconds(4));
}

TEST(JudgeTry, ABrokenLinkIsWorthARetryAndAnUntrustedOneIsNot) {
  const std::pair<HttpTry::Link, Then> links[] = {{HttpTry::Link::Broken, Then::Retry},
                                                  {HttpTry::Link::Stalled, Then::Retry},
                                                  {HttpTry::Link::NotReached, Then::RetryUnlikely},
                                                  {HttpTry::Link::Untrusted, Then::Fail}};
  for (const auto& [link, then] : links) {
    HttpTry attempt;
    attempt.link = link;
    attempt.link_text = "why";
    EXPECT_EQ(judge_try(attempt, "f").then, then);
    EXPECT_EQ(judge_try(attempt, "f").why->message(), "f: why");
  }
}

TEST(JudgeTry, ARefusalCountsThoughItsBodyBrokeOff) {
  HttpTry attempt = answered(404);
  attempt.link = HttpTry::Link::Broken;
  EXPECT_EQ(judge_try(attempt, "f").why->code(), Code::NotFound);
}

}  // namespace
}  // namespace holdfast::world
