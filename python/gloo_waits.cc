#include "gloo_waits.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace holdfast::python {
namespace {

// Members of gloo::transport::tcp::UnboundBuffer, called as plain functions whose first argument is `this`.
using Wait = bool (*)(void* buffer, int* rank, std::chrono::milliseconds timeout);
using Signal = void (*)(void* buffer, std::exception_ptr error);

constexpr const char* kVtable = "_ZTVN4gloo9transport3tcp13UnboundBufferE";
constexpr const char* kWaitRecv =
    "_ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE";
constexpr const char* kWaitSend =
    "_ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE";
constexpr const char* kSignal =
    "_ZN4gloo9transport3tcp13UnboundBuffer15signalExceptionENSt15__exception_ptr13exception_ptrE";
constexpr std::size_t kVtableSlots = 12;  // more than the class has; the table is followed by others of the library

std::mutex mutex;  // guards the three below; never taken by a thread that holds a buffer's own lock
bool installed = false;
bool broken = false;
std::vector<void*> waiting;

Wait wait_recv = nullptr;
Wait wait_send = nullptr;
Signal signal_exception = nullptr;

void tell(void* buffer) {
  signal_exception(buffer,
                   std::make_exception_ptr(std::runtime_error("gloo: the process group is broken, a peer is gone")));
}

// A buffer stays in `waiting` for as long as a wait on it lasts: so none of them is ever gone.
class Waiting {
 public:
  explicit Waiting(void* buffer) : buffer_(buffer) {
    const std::lock_guard lock(mutex);
    waiting.push_back(buffer);
    if (broken) tell(buffer);
  }
  ~Waiting() {
    const std::lock_guard lock(mutex);
    waiting.erase(std::find(waiting.begin(), waiting.end(), buffer_));
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void* buffer_;
};

bool noted_wait_recv(void* buffer, int* rank, std::chrono::milliseconds timeout) {
  const Waiting noted(buffer);
  return wait_recv(buffer, rank, timeout);
}

bool noted_wait_send(void* buffer, int* rank, std::chrono::milliseconds timeout) {
  const Waiting noted(buffer);
  return wait_send(buffer, rank, timeout);
}

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

void** slot_of(void** table, Wait function) {
  void** end = table + kVtableSlots;
  void** slot = std::find(table, end, reinterpret_cast<void*>(function));
  return slot == end ? nullptr : slot;
}

// The table lies in pages that the loader has made read-only.
bool write(void** slot, Wait function) {
  const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_size - 1));
  if (::mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  *slot = reinterpret_cast<void*>(function);
  ::mprotect(page, page_size, PROT_READ);
  return true;
}

}  // namespace

bool GlooWaits::install() {
  const std::lock_guard lock(mutex);
  if (installed) return true;
  void* library = ::dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  void** table = find<void**>(library, kVtable);
  wait_recv = find<Wait>(library, kWaitRecv);
  wait_send = find<Wait>(library, kWaitSend);
  signal_exception = find<Signal>(library, kSignal);
  if (table == nullptr || wait_recv == nullptr || wait_send == nullptr || signal_exception == nullptr) return false;
  void** recv_slot = slot_of(table, wait_recv);
  void** send_slot = slot_of(table, wait_send);
  if (recv_slot == nullptr || send_slot == nullptr) return false;
  installed = write(recv_slot, &noted_wait_recv) && write(send_slot, &noted_wait_send);
  return installed;
}

void GlooWaits::group_begin() {
  const std::lock_guard lock(mutex);
  broken = false;
}

void GlooWaits::group_broken() {
  const std::lock_guard lock(mutex);
  if (!installed) return;
  broken = true;
  for (void* buffer : waiting) tell(buffer);
}

}  // namespace holdfast::python
