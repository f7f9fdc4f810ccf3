#include "app/secret.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace holdfast::app {
namespace {

constexpr std::size_t kSecretBytesMin = 16;

Result<std::string> read_secret(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return Error(Code::BadInput, "--secret-file " + file + " can't be read");
  if ((info.st_mode & 077) != 0) {
    return Error(Code::BadInput, "--secret-file " + file + " can be read by others; chmod 600 it");
  }
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  std::string secret = text.str();
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  return secret;
}

std::string random_secret(world::Random& random) {
  std::string secret;
  for (int word = 0; word < 4; ++word) {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(random.next()));
    secret += hex;
  }
  return secret;
}

}  // namespace

Result<std::string> run_secret(const world::Address& bind, const std::string& file, world::Random& random) {
  std::string secret;
  if (!file.empty()) {
    secret = TRY(read_secret(file), "secret");
  } else if (const char* given = std::getenv("HOLDFAST_SECRET"); given != nullptr && *given != '\0') {
    secret = given;
  } else if (bind.loopback()) {
    return random_secret(random);
  } else {
    return Error(Code::BadInput,
                 "--bind " + bind.host +
                     " is not loopback: give the run a secret, by --secret-file (mode 0600) or HOLDFAST_SECRET");
  }
  if (secret.size() < kSecretBytesMin) {
    return Error(Code::BadInput, "the secret is shorter than 16 bytes; make one with: openssl rand -hex 32");
  }
  return secret;
}

}  // namespace holdfast::app
