#include "store/crc32.h"

#include <isa-l/crc.h>

namespace holdfast::store {

std::uint32_t crc32(BytesView bytes, std::uint32_t before) {
  return crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace holdfast::store
