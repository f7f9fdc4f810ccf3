#include "world/http.h"

#include <curl/curl.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>

#include "base/check.h"

namespace holdfast::world {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using Link = HttpTry::Link;
using Then = HttpVerdict::Then;

constexpr std::size_t kRefusalBytesMax = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds kLookAround{50};  // how soon a stop is noticed while nothing moves

/// OpenSSL writes to sockets that the other side has closed: for as long as this lives, that is no reason to die.
class PipeSignalHeld {
 public:
  PipeSignalHeld() {
    sigset_t pending{};
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalHeld() {
    constexpr timespec at_once{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
  // The rest of the options can fail only where this libcurl was built without them, which `certificate_check` tells.
  (void)curl_easy_setopt(easy, option, value);
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

Link link_of(CURLcode code) {
  switch (code) {
    case CURLE_OK: return Link::Good;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: return Link::NotReached;
    case CURLE_OPERATION_TIMEDOUT: return Link::Stalled;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR: return Link::Untrusted;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_READ_ERROR:
    case CURLE_UPLOAD_FAILED: return Link::Broken;
    default: return Link::Unusable;
  }
}

/// One connection's worth: an exchange under way, between two tries, or none.
class Slot {
 public:
  explicit Slot(const HttpPolicy& policy) : policy_(policy), easy_(curl_easy_init()) { CHECK(easy_ != nullptr); }
  ~Slot() { curl_easy_cleanup(easy_); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  bool busy() const { return exchange_ != nullptr; }
  bool under_way() const { return under_way_; }
  bool is(const CURL* easy) const { return easy_ == easy; }
  SteadyTime due() const { return due_; }
  /// libcurl's own limit goes by the mean of several seconds.
  bool stalled(SteadyTime now) const { return under_way_ && now - moved_at_ > policy_.stall; }

  void take(HttpExchange& exchange) {
    exchange_ = &exchange;
    failures_ = unlikely_ = 0;
    due_ = {};
  }

  void begin(CURLM* multi) {
    attempt_ = {};
    enough_ = false;
    body_begun_ = false;
    request_ = exchange_->request();
    curl_easy_reset(easy_);
    set_up();
    moved_ = 0;
    moved_at_ = std::chrono::steady_clock::now();
    under_way_ = curl_multi_add_handle(multi, easy_) == CURLM_OK;
    CHECK(under_way_);
  }

  void drop(CURLM* multi) {
    if (under_way_) (void)curl_multi_remove_handle(multi, easy_);
    under_way_ = false;
    exchange_ = nullptr;
  }

  /// The try is over: the exchange is done, waits for its next try, or has failed.
  Status end(CURLM* multi, CURLcode code, Random& random) {
    (void)curl_multi_remove_handle(multi, easy_);
    under_way_ = false;
    if (!enough_ && !attempt_.against) {
      attempt_.link = link_of(code);
      attempt_.link_text = text_of(code);
    }
    if (attempt_.good()) begin_body();  // of an empty body nothing came
    HttpVerdict verdict = exchange_->judge(attempt_);
    if (verdict.then == Then::Done) {
      exchange_ = nullptr;
      return Ok{};
    }
    CHECK(verdict.why);
    ++failures_;
    if (verdict.then == Then::RetryUnlikely) ++unlikely_;
    const RetryPolicy& policy = policy_.retry;
    if (verdict.then == Then::Fail || failures_ >= policy.tries_max || unlikely_ >= policy.tries_max_unlikely) {
      exchange_ = nullptr;
      const std::string tries = failures_ < 2 ? "" : "; tried " + std::to_string(failures_) + " times";
      return Error(verdict.why->code(), verdict.why->message() + tries);
    }
    due_ = std::chrono::steady_clock::now() + wait_before_retry(policy, failures_, random.next(), verdict.asked_wait);
    return Ok{};
  }

 private:
  void set_up() {
    set(easy_, CURLOPT_URL, request_.url.sent.c_str());
    set(easy_, CURLOPT_PATH_AS_IS, 1L);
    set(easy_, CURLOPT_NOSIGNAL, 1L);
    set(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // 2 puts all streams on one connection
    set(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
    set(easy_, CURLOPT_BUFFERSIZE, policy_.receive_buffer_bytes);
    set(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(policy_.connect.count()));
    set(easy_, CURLOPT_NOPROGRESS, 0L);
    set(easy_, CURLOPT_XFERINFOFUNCTION, &Slot::see_progress);
    set(easy_, CURLOPT_XFERINFODATA, this);
    set(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
    set(easy_, CURLOPT_SSL_VERIFYHOST, 2L);
    if (!policy_.certificates.empty()) set(easy_, CURLOPT_CAINFO, policy_.certificates.c_str());
    set(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy_, CURLOPT_ERRORBUFFER, error_text_.data());
    error_text_[0] = '\0';
    set(easy_, CURLOPT_HEADERFUNCTION, &Slot::take_header);
    set(easy_, CURLOPT_HEADERDATA, this);
    set(easy_, CURLOPT_WRITEFUNCTION, &Slot::take_body);
    set(easy_, CURLOPT_WRITEDATA, this);
    set_up_secrets();
    set_up_method();
  }

  void set_up_secrets() {
    headers_.reset();
    add_header("Expect:");  // no round trip to ask whether a body is welcome
    for (const std::string& header : request_.headers) add_header(header);
    if (request_.keys) {
      const AwsKeys& keys = *request_.keys;
      add_header("x-amz-content-sha256: UNSIGNED-PAYLOAD");
      if (!keys.session_token.empty()) add_header("x-amz-security-token: " + keys.session_token);
      set(easy_, CURLOPT_AWS_SIGV4, ("aws:amz:" + keys.region + ":s3").c_str());
      set(easy_, CURLOPT_USERNAME, keys.key_id.c_str());
      set(easy_, CURLOPT_PASSWORD, keys.secret.c_str());
    } else {
      if (!request_.url.user.empty() || !request_.url.password.empty()) {
        set(easy_, CURLOPT_USERNAME, request_.url.user.c_str());
        set(easy_, CURLOPT_PASSWORD, request_.url.password.c_str());
      }
      // A signature is for one host. Other credentials libcurl itself keeps from hosts that a redirect leads to.
      set(easy_, CURLOPT_FOLLOWLOCATION, 1L);
      set(easy_, CURLOPT_MAXREDIRS, policy_.redirects_max);
      set(easy_, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    }
    set(easy_, CURLOPT_HTTPHEADER, headers_.get());
  }

  void set_up_method() {
    const std::string& method = request_.method;
    if (method == "HEAD") {
      set(easy_, CURLOPT_NOBODY, 1L);
    } else if (method == "PUT" || method == "POST") {
      set(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
      set(easy_, CURLOPT_POSTFIELDS, request_.body.empty() ? "" : as_text(request_.body).data());
      set(easy_, CURLOPT_CUSTOMREQUEST, method.c_str());
    } else if (method != "GET") {
      set(easy_, CURLOPT_CUSTOMREQUEST, method.c_str());
    }
  }

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    CHECK(longer != nullptr);
    (void)headers_.release();  // now part of the longer one
    headers_.reset(longer);
  }

  /// What libcurl says of a proxy may hold its password, so that its own words are used for certificates alone.
  std::string text_of(CURLcode code) const {
    if (link_of(code) == Link::Untrusted && error_text_[0] != '\0') return printable(error_text_.data());
    if (code == CURLE_OPERATION_TIMEDOUT && attempt_.head.status() == 0) return "no answer in time";
    if (code == CURLE_OPERATION_TIMEDOUT) return "no byte came for " + std::to_string(policy_.stall.count()) + " s";
    if (code == CURLE_PARTIAL_FILE) return "the answer broke off";
    return curl_easy_strerror(code);
  }

  static std::size_t take_header(const char* data, std::size_t size, std::size_t count, void* self) {
    static_cast<Slot*>(self)->attempt_.head.take({data, size * count});
    return size * count;
  }

  static int see_progress(void* self, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
    static_cast<Slot*>(self)->see_moved(down + up);
    return 0;
  }

  void see_moved(curl_off_t bytes) {
    if (bytes == moved_) return;
    moved_ = bytes;
    moved_at_ = std::chrono::steady_clock::now();
  }

  static std::size_t take_body(const char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Slot*>(self)->take({reinterpret_cast<const std::byte*>(data), size * count}) ? size * count : 0;
  }

  bool take(BytesView bytes) {
    if (attempt_.head.status() / 100 != 2) {
      const std::size_t room = kRefusalBytesMax - attempt_.refusal.size();
      attempt_.refusal += as_text(bytes.first(std::min(bytes.size(), room)));
      return true;
    }
    if (!begin_body()) return false;
    Result<bool> more = exchange_->take_body(bytes);
    if (!more) {
      attempt_.against = std::move(more).error();
      return false;
    }
    enough_ = !*more;
    return *more;
  }

  /// Shows the exchange the head, once.
  bool begin_body() {
    if (body_begun_) return true;
    body_begun_ = true;
    Status head = exchange_->take_head(attempt_.head);
    if (!head) attempt_.against = std::move(head).error();
    return !attempt_.against;
  }

  const HttpPolicy& policy_;
  CURL* easy_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  HttpExchange* exchange_ = nullptr;
  HttpRequest request_;
  HttpTry attempt_;
  bool under_way_ = false;
  bool body_begun_ = false;
  bool enough_ = false;
  unsigned failures_ = 0;
  unsigned unlikely_ = 0;
  SteadyTime due_;
  curl_off_t moved_ = 0;  ///< bytes of this try, both ways
  SteadyTime moved_at_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

}  // namespace

/// Connections that one thread at a time uses.
class HttpClient::Lane {
 public:
  explicit Lane(const HttpPolicy& policy) : policy_(policy), multi_(curl_multi_init()) { CHECK(multi_ != nullptr); }
  ~Lane() {
    const PipeSignalHeld held;
    for (const auto& slot : slots_) slot->drop(multi_);
    slots_.clear();
    curl_multi_cleanup(multi_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Status run(unsigned connections, const std::function<HttpExchange*()>& next, const std::stop_token& stop,
             Random& random) {
    const PipeSignalHeld held;
    while (slots_.size() < connections) slots_.push_back(std::make_unique<Slot>(policy_));
    (void)curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(slots_.size()));
    const Status done = serve(connections, next, stop, random);
    for (const auto& slot : slots_) slot->drop(multi_);
    return done;
  }

 private:
  Status serve(unsigned connections, const std::function<HttpExchange*()>& next, const std::stop_token& stop,
               Random& random) {
    for (bool more = true; !stop.stop_requested();) {
      const bool busy = begin_what_is_due(connections, next, more);
      if (!busy) return Ok{};
      int running = 0;
      if (curl_multi_perform(multi_, &running) != CURLM_OK) return Error(Code::Internal, "libcurl failed");
      bool any_ended = false;
      if (Status judged = judge_what_ended(random, any_ended); !judged) return judged;
      if (any_ended) continue;
      (void)curl_multi_poll(multi_, nullptr, 0, static_cast<int>(patience().count()), nullptr);
    }
    return Ok{};
  }

  /// False where nothing is left to do.
  bool begin_what_is_due(unsigned connections, const std::function<HttpExchange*()>& next, bool& more) {
    const SteadyTime now = std::chrono::steady_clock::now();
    bool busy = false;
    for (std::size_t i = 0; i < connections; ++i) {
      Slot& slot = *slots_[i];
      if (!slot.busy() && more) {
        if (HttpExchange* exchange = next(); exchange != nullptr) {
          slot.take(*exchange);
        } else {
          more = false;
        }
      }
      if (slot.busy() && !slot.under_way() && slot.due() <= now) slot.begin(multi_);
      busy = busy || slot.busy();
    }
    return busy;
  }

  Status judge_what_ended(Random& random, bool& any) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto slot =
          std::find_if(slots_.begin(), slots_.end(), [&](const auto& each) { return each->is(message->easy_handle); });
      CHECK(slot != slots_.end());
      any = true;
      if (Status ended = (*slot)->end(multi_, code, random); !ended) return ended;
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& slot : slots_) {
      if (!slot->stalled(now)) continue;
      any = true;
      if (Status ended = slot->end(multi_, CURLE_OPERATION_TIMEDOUT, random); !ended) return ended;
    }
    return Ok{};
  }

  std::chrono::milliseconds patience() const {
    std::chrono::milliseconds wait = kLookAround;
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& slot : slots_) {
      if (!slot->busy() || slot->under_way()) continue;
      wait = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(slot->due() - now), {}, wait);
    }
    return wait;
  }

  const HttpPolicy& policy_;
  CURLM* multi_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

HttpClient::HttpClient(Random& random, HttpPolicy policy) : random_(random), policy_(std::move(policy)) {
  static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(begun == CURLE_OK);
}

HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Lane> HttpClient::take_lane() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Lane>(policy_);
  std::unique_ptr<Lane> lane = std::move(idle_.back());
  idle_.pop_back();
  return lane;
}

Status HttpClient::run_all(unsigned connections, const std::function<HttpExchange*()>& next,
                           const std::stop_token& stop) {
  std::unique_ptr<Lane> lane = take_lane();
  Status done = lane->run(std::max(1U, connections), next, stop, random_);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(lane));
  return done;
}

Status HttpClient::run(HttpExchange& exchange) {
  HttpExchange* next = &exchange;
  return run_all(1, [&next] { return std::exchange(next, nullptr); }, {});
}

}  // namespace holdfast::world
