// What this machine can do at most, without any format: copies in memory, copies out of the page cache into memory that
// is there already, reads and writes past the cache. One JSON line for each run: seconds of the clock and of the CPUs.
//
//   limits memcpy|arena|direct_read FILE RUNS THREADS      FILE's size is what is moved
//   limits direct_write FILE RUNS THREADS BYTES
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kUnit = std::size_t{4} << 20;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Memory that is there: on huge pages, each written.
char* arena(std::size_t size) {
  void* all = mmap(nullptr, size + 2 * kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) fail("mmap");
  const auto begin = (reinterpret_cast<std::uintptr_t>(all) + kHugePage - 1) / kHugePage * kHugePage;
  auto* memory = reinterpret_cast<char*>(begin);
  madvise(memory, size + kHugePage, MADV_HUGEPAGE);
  std::memset(memory, 1, size + kHugePage);
  return memory;
}

void in_parallel(int threads, std::size_t size, std::size_t unit,
                 const std::function<void(std::size_t begin, std::size_t length)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t begin = next.fetch_add(unit); begin < size; begin = next.fetch_add(unit)) {
      body(begin, std::min(unit, size - begin));
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& each : others) each.join();
}

struct Run {
  double wall = 0;
  double cpu = 0;
};

Run timed(const std::function<void()>& call) {
  const double cpu = cpu_s();
  const double wall = now_s();
  call();
  return {now_s() - wall, cpu_s() - cpu};
}

void print(const Run& run) { std::printf("{\"wall\": %.6f, \"cpu\": %.6f}\n", run.wall, run.cpu); }

void read_all(int fd, char* to, std::size_t begin, std::size_t length, std::size_t size) {
  // The end of the file may lie within a page: more is asked for than there is.
  const std::size_t asked = begin + length == size ? (length + 4095) / 4096 * 4096 : length;
  if (pread(fd, to + begin, asked, static_cast<off_t>(begin)) != static_cast<ssize_t>(length)) fail("pread");
}

void write_all(const char* path, char* from, std::size_t size, int threads) {
  unlink(path);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0644);
  if (fd < 0) fail(path);
  if (fallocate(fd, 0, 0, static_cast<off_t>(size)) != 0) fail("fallocate");
  in_parallel(threads, size, kUnit, [&](std::size_t begin, std::size_t length) {
    if (pwrite(fd, from + begin, length, static_cast<off_t>(begin)) != static_cast<ssize_t>(length)) fail("pwrite");
  });
  if (fdatasync(fd) != 0) fail("fdatasync");
  close(fd);
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  const std::string what = words[1];
  const char* path = words[2];
  const int runs = std::atoi(words[3]);
  const int threads = std::atoi(words[4]);
  struct stat about{};
  if (what != "direct_write" && stat(path, &about) != 0) fail(path);
  const std::size_t size = what == "direct_write" ? std::strtoull(words[5], nullptr, 10) / 4096 * 4096
                                                  : static_cast<std::size_t>(about.st_size);
  char* memory = arena(size);
  const int fd = what == "direct_write" ? -1 : open(path, what == "direct_read" ? O_RDONLY | O_DIRECT : O_RDONLY);
  char* other = what == "memcpy" ? arena(size) : nullptr;
  for (int i = 0; i < runs; ++i) {
    if (what == "memcpy") {
      print(timed([&] {
        in_parallel(threads, size, 2 * kUnit,
                    [&](std::size_t begin, std::size_t length) { std::memcpy(memory + begin, other + begin, length); });
      }));
    } else if (what == "arena") {
      print(timed([&] {
        in_parallel(threads, size, 2 * kUnit,
                    [&](std::size_t begin, std::size_t length) { read_all(fd, memory, begin, length, size); });
      }));
    } else if (what == "direct_read") {
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      print(timed([&] {
        in_parallel(threads, size, kUnit,
                    [&](std::size_t begin, std::size_t length) { read_all(fd, memory, begin, length, size); });
      }));
    } else {
      print(timed([&] { write_all(path, memory, size, threads); }));
      unlink(path);
    }
  }
  return 0;
}
