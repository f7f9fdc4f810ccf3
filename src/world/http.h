// An HTTP client: exchanges that are tried again as a policy says, several at a time on the calling thread, over
// connections that are kept and used again. TLS certificates are always verified.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "world/http_headers.h"
#include "world/random.h"
#include "world/retry.h"
#include "world/url.h"

namespace holdfast::world {

struct HttpPolicy {
  RetryPolicy retry;
  std::chrono::milliseconds connect{5'000};
  std::chrono::seconds stall{15};  ///< a connection on which no byte moves for so long has failed; at least 1 s
  long redirects_max = 5;
  long receive_buffer_bytes = 512L << 10U;  ///< of each connection: fewer calls; more would leave the core's cache
  std::string certificates;                 ///< file of those to trust; "": the system's
};

/// Who signs a request to S3.
struct AwsKeys {
  std::string key_id;
  std::string secret;
  std::string session_token;  ///< "" where there is none
  std::string region;
};

struct HttpRequest {
  std::string method = "GET";
  HttpUrl url;
  std::vector<std::string> headers;  ///< "Name: value"
  BytesView body;                    ///< stays the caller's; sent with all methods but GET, HEAD and DELETE
  std::optional<AwsKeys> keys;
};

/// What came of one try.
struct HttpTry {
  /// Untrusted: the server's certificate.
  enum class Link { Good, NotReached, Broken, Stalled, Untrusted, Unusable };
  Link link = Link::Good;
  std::string link_text;         ///< what was wrong with the link
  HttpHead head;                 ///< status 0 where no answer came
  std::string refusal;           ///< the start of the body of an answer other than 2xx
  std::optional<Error> against;  ///< what the exchange itself had against the answer

  /// All of a 2xx answer came, and the exchange took it.
  bool good() const { return link == Link::Good && !against && head.status() / 100 == 2; }
};

struct HttpVerdict {
  enum class Then { Done, Fail, Retry, RetryUnlikely };
  Then then = Then::Done;
  std::optional<Error> why;
  std::optional<std::chrono::seconds> asked_wait;
};

/// One thing to be had from a server, in as many tries as it takes. Called from one thread at a time.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  /// Of the next try; whatever it points to stays until `judge`.
  virtual HttpRequest request() = 0;
  /// The head of a 2xx answer; an error refuses its body.
  virtual Status take_head(const HttpHead& head) = 0;
  /// The next bytes of its body. False: enough, the rest is not wanted.
  virtual Result<bool> take_body(BytesView bytes) = 0;
  /// The try is over. See judge_try (http_judge.h) for what most answers mean.
  virtual HttpVerdict judge(const HttpTry& attempt) = 0;
};

class HttpClient {
 public:
  /// `random` outlives this object and is thread-safe.
  HttpClient(Random& random, HttpPolicy policy);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Blocks until it is judged done, or failed as often as the policy allows. Thread-safe.
  Status run(HttpExchange& exchange);
  /// Runs those that `next` gives (until null), up to `connections` at a time. The first that fails ends the others.
  /// Ok as well where it was stopped. Thread-safe, several calls at a time: each has connections of its own.
  Status run_all(unsigned connections, const std::function<HttpExchange*()>& next, const std::stop_token& stop);

 private:
  class Lane;
  std::unique_ptr<Lane> take_lane();

  Random& random_;
  HttpPolicy policy_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> idle_;  ///< guarded by mutex_; the last used comes first, its connections are warm
};

}  // namespace holdfast::world
