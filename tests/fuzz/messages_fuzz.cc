// Fuzzes the messages between agent and workers: whatever decodes must encode to bytes that decode to the same.
#include "base/check.h"
#include "run/messages.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = run::decode(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  const Bytes again = run::encode(*message);
  const auto second = run::decode(again);
  CHECK(second && second->index() == message->index());
  CHECK(run::encode(*second) == again);
  return 0;
}
