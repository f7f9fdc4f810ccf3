#include "store/tensor_values.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "store/aligned_bytes.h"
#include "store/checksums.h"
#include "store/dtype.h"
#include "store/elements.h"
#include "world/parallel.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{3} << 20U;  // whole elements of every type, those of 6 bits too
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

std::uint64_t bytes_of(const ModelTensor& tensor) { return tensor.info->end - tensor.info->begin; }

std::uint64_t blocks_of(const ModelTensor& tensor) { return (bytes_of(tensor) + kBlockBytes - 1) / kBlockBytes; }

Result<AlignedBytes> read_block(const ModelTensor& tensor, std::uint64_t block) {
  const std::uint64_t begin = block * kBlockBytes;
  AlignedBytes bytes(std::min(kBlockBytes, bytes_of(tensor) - begin));
  if (Status read = tensor.file->tensors.read({{tensor.info->begin + begin, bytes.all()}}); !read) {
    return std::move(read).error();
  }
  return bytes;
}

std::uint64_t elements_of(const TensorInfo& tensor) {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : tensor.shape) count *= dimension;  // fits: its bytes do
  return count;
}

/// `body` of each block, several at a time; all results in order, or the first error.
template <typename T>
Result<std::vector<T>> over_blocks(std::uint64_t blocks, unsigned threads,
                                   const std::function<Result<T>(std::uint64_t)>& body) {
  std::vector<std::optional<Result<T>>> parts(blocks);
  std::atomic<bool> failed = false;
  world::parallel_for(threads, blocks, [&](std::size_t i) {
    if (failed) return;
    parts[i] = body(i);
    if (!*parts[i]) failed = true;
  });
  std::vector<T> all;
  for (auto& part : parts) {
    if (part && !*part) return std::move(*part).error();
    if (part && !failed) all.push_back(**std::move(part));
  }
  return all;
}

/// Magnitudes of complex elements; of others the values themselves.
long double plain(const long double* parts, unsigned count) {
  return count == 1 ? *parts : std::hypot(parts[0], parts[1]);
}

struct Partial {
  TensorStatistics statistics;
  long double sum = 0;
};

Result<Partial> measure_block(const ModelTensor& tensor, std::uint64_t block, std::size_t first_max) {
  const AlignedBytes bytes = TRY(read_block(tensor, block), "tensor " + tensor.info->name);
  const std::vector<long double> values = decode_elements(tensor.info->dtype, bytes.all());
  const unsigned parts = parts_of(tensor.info->dtype);
  Partial partial;
  TensorStatistics& found = partial.statistics;
  for (std::size_t i = 0; i < values.size(); i += parts) {
    const long double* element = &values[i];
    if (found.first.size() < first_max) found.first.push_back(element_text(tensor.info->dtype, element));
    ++found.elements;
    const bool nan = std::isnan(element[0]) || (parts == 2 && std::isnan(element[1]));
    const long double value = plain(element, parts);
    if (nan) {
      ++found.nan;
    } else if (std::isinf(value)) {
      ++found.infinite;
    } else {
      found.min = std::min(found.min.value_or(value), value);
      found.max = std::max(found.max.value_or(value), value);
      partial.sum += value;
    }
  }
  return partial;
}

void add(Partial& all, Partial&& more) {
  TensorStatistics& into = all.statistics;
  into.elements += more.statistics.elements;
  into.nan += more.statistics.nan;
  into.infinite += more.statistics.infinite;
  if (const auto min = more.statistics.min) into.min = std::min(into.min.value_or(*min), *min);
  if (const auto max = more.statistics.max) into.max = std::max(into.max.value_or(*max), *max);
  all.sum += more.sum;
  for (std::string& text : more.statistics.first) into.first.push_back(std::move(text));
}

long double distance(const long double* a, const long double* b, unsigned parts) {
  long double apart = 0;
  for (unsigned i = 0; i < parts; ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::isinf(a[i]) && a[i] == b[i]) continue;
    const long double difference = std::abs(a[i] - b[i]);
    const long double counted = std::isnan(difference) ? kInfinity : difference;
    apart = parts == 1 ? counted : std::hypot(apart, counted);
  }
  return apart;
}

/// Counts what differs between two blocks of one type.
TensorDifference compare_values(const std::string& dtype, BytesView a, BytesView b, std::uint64_t element,
                                const DiffPolicy& policy) {
  TensorDifference found;
  const std::vector<long double> left = decode_elements(dtype, a);
  const std::vector<long double> right = decode_elements(dtype, b);
  const unsigned parts = parts_of(dtype);
  const std::size_t width = dtype_bits(dtype).value_or(8) / 8;
  for (std::size_t i = 0; i < left.size(); i += parts, ++element) {
    const std::size_t at = i / parts * width;
    const bool same = width == 0 ? left[i] == right[i] && std::signbit(left[i]) == std::signbit(right[i])
                                 : std::memcmp(a.data() + at, b.data() + at, width) == 0;
    if (same) continue;
    ++found.other;
    const long double absolute = distance(&left[i], &right[i], parts);
    const long double larger = std::max(std::abs(plain(&left[i], parts)), std::abs(plain(&right[i], parts)));
    const long double relative = absolute == 0 ? 0 : (std::isfinite(absolute) ? absolute / larger : kInfinity);
    found.absolute_max = std::max(found.absolute_max, absolute);
    found.relative_max = std::max(found.relative_max, relative);
    if (policy.tolerance > 0 && (absolute <= policy.tolerance || relative <= policy.tolerance)) continue;
    ++found.beyond;
    if (!found.first) found.first = element;
  }
  return found;
}

Result<TensorDifference> compare_block(const ModelTensor& a, const ModelTensor& b, std::uint64_t block,
                                       const DiffPolicy& policy) {
  const AlignedBytes left = TRY(read_block(a, block), "tensor " + a.info->name);
  const AlignedBytes right = TRY(read_block(b, block), "tensor " + b.info->name);
  if (std::memcmp(left.all().data(), right.all().data(), left.all().size()) == 0) return TensorDifference{};
  const std::uint64_t first = block * (kBlockBytes * 8 / dtype_bits(a.info->dtype).value_or(8));
  return compare_values(a.info->dtype, left.all(), right.all(), first, policy);
}

/// Whether checksums alone tell that the two are the same: those of all chunks that they lie in, in files laid out
/// alike.
bool same_by_checksums(const ModelTensor& a, const ModelTensor& b) {
  const TensorFile& left = a.file->tensors.about();
  const TensorFile& right = b.file->tensors.about();
  if (!left.checksums || !right.checksums || left.header.tensors != right.header.tensors) return false;
  if (a.info->begin != b.info->begin) return false;
  if (a.info->begin == a.info->end) return true;
  const std::uint64_t last = (a.info->end - 1) / kChecksumChunkBytes;
  for (std::uint64_t chunk = a.info->begin / kChecksumChunkBytes; chunk <= last; ++chunk) {
    if (left.checksums->chunks[chunk] != right.checksums->chunks[chunk]) return false;
  }
  return true;
}

}  // namespace

Result<TensorStatistics> measure(const ModelTensor& tensor, std::size_t first_max, unsigned threads) {
  const std::function<Result<Partial>(std::uint64_t)> block = [&](std::uint64_t i) {
    return measure_block(tensor, i, i == 0 ? first_max : 0);
  };
  auto parts = over_blocks(blocks_of(tensor), threads, block);
  if (!parts) return std::move(parts).error();
  Partial all;
  for (Partial& part : *parts) add(all, std::move(part));
  const std::uint64_t finite = all.statistics.elements - all.statistics.nan - all.statistics.infinite;
  if (finite != 0) all.statistics.mean = all.sum / static_cast<long double>(finite);
  return std::move(all.statistics);
}

Result<TensorDifference> compare(const ModelTensor& a, const ModelTensor& b, const DiffPolicy& policy,
                                 unsigned threads) {
  TensorDifference all;
  all.elements = elements_of(*a.info);
  all.by_checksums = policy.trust_checksums && same_by_checksums(a, b);
  if (all.by_checksums) return all;
  const std::function<Result<TensorDifference>(std::uint64_t)> block = [&](std::uint64_t i) {
    return compare_block(a, b, i, policy);
  };
  const auto parts = over_blocks(blocks_of(a), threads, block);
  if (!parts) return parts.error();
  for (const TensorDifference& part : *parts) {
    all.other += part.other;
    all.beyond += part.beyond;
    all.absolute_max = std::max(all.absolute_max, part.absolute_max);
    all.relative_max = std::max(all.relative_max, part.relative_max);
    if (!all.first) all.first = part.first;
  }
  return all;
}

}  // namespace holdfast::store
