#include "world/http_judge.h"

#include "world/s3_xml.h"

namespace holdfast::world {
namespace {

using Then = HttpVerdict::Then;
using Link = HttpTry::Link;

HttpVerdict broken(const HttpTry& attempt, const std::string& what) {
  const std::string text = what + ": " + attempt.link_text;
  switch (attempt.link) {
    case Link::Untrusted: return {Then::Fail, Error(Code::Denied, text), {}};
    case Link::Unusable: return {Then::Fail, Error(Code::Internal, text), {}};
    case Link::NotReached: return {Then::RetryUnlikely, Error(Code::Unavailable, text), {}};
    default: return {Then::Retry, Error(Code::Unavailable, text), {}};
  }
}

const char* meaning(int status) {
  switch (status) {
    case 401: return "credentials are missing or wrong";
    case 403: return "access denied";
    case 404:
    case 410: return "no such file";
    case 412: return "it is not as the condition asks";
    case 416: return "no such range";
    case 429: return "too many requests";
    case 503: return "busy";
    default: return status >= 500 ? "the server failed" : status >= 400 ? "refused" : "no file";
  }
}

Code code_of(int status) {
  switch (status) {
    case 401:
    case 403: return Code::Denied;
    case 404:
    case 410: return Code::NotFound;
    case 409:
    case 412: return Code::Conflict;
    default: return status >= 500 || status == 429 || status == 408 ? Code::Unavailable : Code::Internal;
  }
}

bool passes(int status, const std::string& s3_code) {
  switch (status) {
    case 400:  // the body stopped on its way, or was changed on it
      return s3_code == "RequestTimeout" || s3_code == "BadDigest" || s3_code == "XAmzContentChecksumMismatch";
    case 408:
    case 409:  // S3: another conditional write is under way
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504: return true;
    default: return false;
  }
}

}  // namespace

HttpVerdict judge_try(const HttpTry& attempt, const std::string& what) {
  if (attempt.good()) return {};
  if (attempt.against) return {Then::Fail, attempt.against, {}};
  const int status = attempt.head.status();
  // A refusal says all it has to in its head: where its body broke off, the status still counts.
  if (attempt.link != Link::Good && status < 300) return broken(attempt, what);
  if (status == 0) return {Then::RetryUnlikely, Error(Code::Unavailable, what + ": an answer that is not HTTP"), {}};
  const S3Error s3 = parse_s3_error(attempt.refusal);
  std::string text = what + ": " + meaning(status) + " (HTTP " + std::to_string(status);
  if (!s3.code.empty()) text += ", " + printable(s3.code);
  if (!s3.message.empty()) text += ": " + printable(s3.message);
  const Then then = passes(status, s3.code) ? Then::Retry : Then::Fail;
  return {then, Error(code_of(status), text + ")"), parse_retry_after(attempt.head.header("retry-after"))};
}

}  // namespace holdfast::world
