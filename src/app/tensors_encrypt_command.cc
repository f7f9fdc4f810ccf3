// `holdfast tensors encrypt`, `decrypt` and `rekey`: tensor files that only the key's owner can read.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "app/commands.h"
#include "app/key_flags.h"
#include "base/log.h"
#include "run/coordinator.h"
#include "store/compression.h"
#include "store/model_copy.h"
#include "store/sealed_file.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::app {
namespace {

struct Wanted {
  std::string in, out;
  KeyFlags key{.prefix = "--key", .file = {}, .env = {}, .command = {}};
  KeyFlags new_key{.prefix = "--new-key", .file = {}, .env = {}, .command = {}};
  int level = 0;
};

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

Status copy(const Wanted& wanted, world::FileSource& from, world::FileTarget& to) {
  const store::OpenTensorFile in = TRY(store::OpenTensorFile::open(from, absolute(wanted.in)), "open");
  return store::copy_tensor_file(in, to, absolute(wanted.out), world::usable_cpus(),
                                 ".partial-" + std::to_string(::getpid()));
}

Status encrypt(const Wanted& wanted, world::World& world) {
  const store::SealKey key = TRY(need_key(wanted.key), "encrypt");
  store::UnsealedFiles from(world.disk(), std::nullopt);
  store::SealedFiles to(world.disk(), {.key = key, .level = wanted.level}, world.random());
  TRY(copy(wanted, from, to), "encrypt");
  std::printf("%s: encrypted for key %s\n", wanted.out.c_str(), store::key_id_text(key.id()).c_str());
  return Ok{};
}

Status decrypt(const Wanted& wanted, world::World& world) {
  const store::SealKey key = TRY(need_key(wanted.key), "decrypt");
  store::UnsealedFiles from(world.disk(), key);
  TRY(copy(wanted, from, world.disk()), "decrypt");
  std::printf("%s: decrypted\n", wanted.out.c_str());
  return Ok{};
}

Status rekey(const Wanted& wanted, world::World& world) {
  const store::SealKey old = TRY(need_key(wanted.key), "rekey");
  const store::SealKey fresh = TRY(need_key(wanted.new_key), "rekey");
  TRY(store::rekey_sealed_file(world.disk(), absolute(wanted.in), old, fresh, world.random()), "rekey");
  std::printf("%s: key %s opens it now, key %s no longer does\n", wanted.in.c_str(),
              store::key_id_text(fresh.id()).c_str(), store::key_id_text(old.id()).c_str());
  return Ok{};
}

CLI::App* add(CLI::App& tensors, const char* name, const char* what, const char* examples,
              Status (*act)(const Wanted&, world::World&), const std::shared_ptr<Wanted>& wanted, int& exit_code) {
  CLI::App* command = tensors.add_subcommand(name, what);
  command->footer(std::string("Example:\n") + examples);
  command->callback([wanted, act, &exit_code] {
    const auto world = world::make_real_world();
    const Status done = act(*wanted, *world);
    if (!done) log_error(done.error().message());
    exit_code = done ? run::kExitDone : run::kExitUsage;
  });
  return command;
}

}  // namespace

void add_tensors_encrypt(CLI::App& tensors, int& exit_code) {
  const auto encrypting = std::make_shared<Wanted>();
  CLI::App* command = add(tensors, "encrypt", "Encrypt a file with AES-256-GCM: names, shapes and data",
                          "  (umask 077; openssl rand -hex 32 > model.key)\n"
                          "  holdfast tensors encrypt model.safetensors secret.safetensors --key-file model.key\n",
                          &encrypt, encrypting, exit_code);
  command->add_option("in", encrypting->in, "a safetensors file")->required()->type_name("IN");
  command->add_option("out", encrypting->out, "the encrypted file; replaced whole or not at all")
      ->required()
      ->type_name("OUT");
  command->add_flag("--compress{1}", encrypting->level, "with zstd first; --compress=LEVEL for more than level 1")
      ->check(CLI::Range(1, store::kCompressionLevelMax));
  add_key_flags(*command, encrypting->key, "the key");

  const auto decrypting = std::make_shared<Wanted>();
  command = add(tensors, "decrypt", "Write an encrypted file as the plain one it was made of",
                "  holdfast tensors decrypt secret.safetensors model.safetensors --key-file model.key\n", &decrypt,
                decrypting, exit_code);
  command->add_option("in", decrypting->in, "an encrypted file")->required()->type_name("IN");
  command->add_option("out", decrypting->out, "the plain file; replaced whole or not at all")
      ->required()
      ->type_name("OUT");
  add_key_flags(*command, decrypting->key, "the key");

  const auto rekeying = std::make_shared<Wanted>();
  command = add(tensors, "rekey", "Change the key of an encrypted file in place, without touching its data",
                "  holdfast tensors rekey secret.safetensors --key-file model.key --new-key-file new.key\n", &rekey,
                rekeying, exit_code);
  command->add_option("file", rekeying->in, "an encrypted file")->required()->type_name("FILE");
  add_key_flags(*command, rekeying->key, "the key that opens it now");
  add_key_flags(*command, rekeying->new_key, "the key that shall open it from now on");
}

}  // namespace holdfast::app
