// A file or directory of a simulated disk: what programs see, and what a crash would leave.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "sim/random.h"

namespace holdfast::sim {

struct Inode;
/// Shared: a name, the name a crash would bring back, open files and changes not yet synced all hold the same inode.
using InodePtr = std::shared_ptr<Inode>;
using Names = std::map<std::string, InodePtr>;

/// Bytes written and not on stable storage.
struct Unsynced {
  std::size_t offset = 0;
  std::size_t size = 0;
  Bytes before;         ///< what stood there, shorter where the write went beyond the file's end
  bool doomed = false;  ///< a sync of it failed: later syncs say Ok and don't write it, as Linux does
};

struct Inode {
  bool directory = false;
  bool linked = true;  ///< has a name (as programs see it)
  int opens = 0;

  Bytes bytes;
  std::vector<Unsynced> unsynced;  ///< by offset; no two overlap: nothing here writes a place twice between syncs
  std::optional<Bytes> before_truncation;  ///< while the truncation itself is not synced

  Names names;    ///< as programs see them
  Names durable;  ///< as a crash that loses all unsynced changes would leave them

  /// Where this inode stands in `durable` of another: nowhere, or in one place. A rename thus moves it whole, whichever
  /// earlier renames are lost.
  std::weak_ptr<Inode> durable_dir;
  std::string durable_name;
};

/// Makes the bytes last.
void sync_bytes(Inode& file);
/// The sync failed: what it should have written stays at risk for good.
void doom_bytes(Inode& file);
/// What a crash leaves of a file: each unsynced write kept, torn or dropped by chance.
Bytes surviving_bytes(const Inode& file, SimRandom& random);

}  // namespace holdfast::sim
