// A checkpoint written anew elsewhere, or under a new epoch in its own directory: complete in itself, whatever it
// shared with others.
#pragma once

#include "base/result.h"
#include "store/checkpoint_dir.h"
#include "store/open_checkpoint.h"

namespace holdfast::store {

/// Writes `from` as checkpoint `id` of the directory `to` in `files` and commits it, each chunk checked on the way.
/// Blocks for all of it. Errors: Conflict (`id` is committed there, a newer epoch has taken over), Corrupt (a chunk of
/// `from`), Unavailable.
Status copy_checkpoint(const OpenCheckpoint& from, world::FileTree& files, CheckpointDir& to, CheckpointId id,
                       unsigned threads);

}  // namespace holdfast::store
