// For tests: versitygw on loopback, with a bucket, as long as a test runs.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "world/fd.h"
#include "world/real_fixture.h"
#include "world/real_world.h"
#include "world/s3_store.h"

namespace holdfast::world {

class S3Server {
 public:
  /// `program`: where versitygw lies.
  explicit S3Server(std::string program) : program_(std::move(program)) {
    for (int tries = 0; tries < 3 && !start(); ++tries) stop();  // another process may take the port before it does
    EXPECT_GT(pid_, 0) << "versitygw does not start; tools/setup test builds it";
  }
  ~S3Server() { stop(); }
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  S3Settings settings() const {
    return {"http://127.0.0.1:" + std::to_string(port_), AwsKeys{"key", "secret", "", ""}, "us-east-1"};
  }

 private:
  static Fd connected_to(std::uint16_t port, int (*join)(int, const sockaddr*, socklen_t)) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (join(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Fd();
    return socket;
  }

  static std::uint16_t free_port() {
    const Fd socket = connected_to(0, &::bind);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }

  bool start() {
    port_ = free_port();
    std::filesystem::create_directories(dir_.path("models"));
    const std::string listen = "127.0.0.1:" + std::to_string(port_);
    const std::string folder = dir_.path("");
    const char* words[] = {program_.c_str(), "--port", listen.c_str(), "--quiet", "posix", folder.c_str(), nullptr};
    const char* environment[] = {"ROOT_ACCESS_KEY=key", "ROOT_SECRET_KEY=secret", nullptr};
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = ::posix_spawn(&pid_, program_.c_str(), &actions, nullptr, const_cast<char**>(words),
                                     const_cast<char**>(environment));
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) pid_ = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (pid_ > 0 && std::chrono::steady_clock::now() < end && ::waitpid(pid_, nullptr, WNOHANG) == 0) {
      if (connected_to(port_, &::connect)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  std::string program_;
  TempDir dir_;
  std::uint16_t port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace holdfast::world
