#include "world/http_call.h"

#include "world/http_judge.h"

namespace holdfast::world {
namespace {

class WholeAnswer final : public HttpExchange {
 public:
  WholeAnswer(HttpRequest request, const std::string& what, std::uint64_t bytes_max)
      : request_(std::move(request)), what_(what), bytes_max_(bytes_max) {}

  HttpRequest request() override {
    ++tries_;
    answer_.body.clear();
    return request_;
  }
  Status take_head(const HttpHead& head) override {
    answer_.head = head;
    return Ok{};
  }
  Result<bool> take_body(BytesView bytes) override {
    if (bytes.size() > bytes_max_ - answer_.body.size()) {
      return Error(Code::BadInput, what_ + ": more than " + std::to_string(bytes_max_) + " bytes");
    }
    answer_.body.insert(answer_.body.end(), bytes.begin(), bytes.end());
    return true;
  }
  HttpVerdict judge(const HttpTry& attempt) override { return judge_try(attempt, what_); }

  unsigned tries() const { return tries_; }
  HttpAnswer take() && { return std::move(answer_); }

 private:
  HttpRequest request_;
  const std::string& what_;
  std::uint64_t bytes_max_;
  unsigned tries_ = 0;
  HttpAnswer answer_;
};

}  // namespace

Result<HttpAnswer> http_call(HttpClient& client, HttpRequest request, const std::string& what, std::uint64_t bytes_max,
                             unsigned* tries) {
  WholeAnswer exchange(std::move(request), what, bytes_max);
  Status done = client.run(exchange);
  if (tries != nullptr) *tries = exchange.tries();
  if (!done) return std::move(done).error();
  return std::move(exchange).take();
}

}  // namespace holdfast::world
