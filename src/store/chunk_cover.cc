#include "store/chunk_cover.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "store/dtype.h"

namespace holdfast::store {
namespace {

constexpr std::uint64_t kComparisonsMax = 50'000'000;

Error bad(const std::string& why) { return {Code::BadInput, why}; }

std::string box_text(const Box& box) { return "the part of " + shape_text(box.shape) + " at " + shape_text(box.begin); }

std::uint64_t volume(std::span<const std::uint64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, std::multiplies<>());
}

bool overlap(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    if (a.begin[i] >= b.begin[i] + b.shape[i] || b.begin[i] >= a.begin[i] + a.shape[i]) return false;
  }
  return true;
}

/// The dimension along which the boxes begin at the most places.
std::size_t busiest_dimension(std::span<const Box* const> boxes, std::size_t dimensions) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < dimensions; ++i) {
    std::set<std::uint64_t> begins;
    for (const Box* box : boxes) begins.insert(box->begin[i]);
    if (begins.size() <= most) continue;
    most = begins.size();
    best = i;
  }
  return best;
}

/// Sweeps along one dimension and compares each box with those that have not ended yet.
Status check_apart(std::vector<const Box*> boxes, std::size_t dimensions) {
  if (boxes.size() < 2) return Ok{};
  if (dimensions == 0) return bad("it is kept twice");
  const std::size_t along = busiest_dimension(boxes, dimensions);
  std::sort(boxes.begin(), boxes.end(), [&](const Box* a, const Box* b) { return a->begin[along] < b->begin[along]; });
  std::vector<const Box*> open;
  std::uint64_t comparisons = 0;
  for (const Box* box : boxes) {
    std::erase_if(open, [&](const Box* each) { return each->begin[along] + each->shape[along] <= box->begin[along]; });
    comparisons += open.size();
    if (comparisons > kComparisonsMax) return bad("it is kept in more parts than can be compared");
    for (const Box* each : open) {
      if (overlap(*each, *box)) return bad(box_text(*each) + " and " + box_text(*box) + " overlap");
    }
    open.push_back(box);
  }
  return Ok{};
}

}  // namespace

Status check_cover(std::span<const std::uint64_t> shape, std::span<const Box> boxes) {
  const std::uint64_t total = volume(shape);
  std::uint64_t covered = 0;
  std::vector<const Box*> filled;
  for (const Box& box : boxes) {
    if (box.begin.size() != shape.size() || box.shape.size() != shape.size()) {
      return bad(box_text(box) + " has other dimensions than the tensor");
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (box.begin[i] > shape[i] || box.shape[i] > shape[i] - box.begin[i]) {
        return bad(box_text(box) + " lies outside the tensor of " + shape_text(shape));
      }
    }
    if (volume(box.shape) == 0) continue;
    filled.push_back(&box);
    if (__builtin_add_overflow(covered, volume(box.shape), &covered)) return bad("its parts overlap");
  }
  if (Status apart = check_apart(std::move(filled), shape.size()); !apart) return apart;
  if (covered == total) return Ok{};
  return bad(std::to_string(total - covered) + " of its " + std::to_string(total) + " elements are kept nowhere");
}

bool is_run(std::span<const std::uint64_t> shape, const Box& box) {
  std::size_t i = 0;
  while (i < shape.size() && box.shape[i] == 1) ++i;
  for (++i; i < shape.size(); ++i) {
    if (box.shape[i] != shape[i]) return false;
  }
  return true;
}

std::uint64_t first_element(std::span<const std::uint64_t> shape, const Box& box) {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + box.begin[i];
  return at;
}

void place_box(std::span<const std::uint64_t> shape, const Box& box, std::size_t element_bytes, BytesView elements,
               std::span<std::byte> tensor) {
  if (elements.empty()) return;
  if (shape.empty()) {
    std::memcpy(tensor.data(), elements.data(), element_bytes);
    return;
  }
  const std::size_t row = box.shape.back() * element_bytes;
  Box line = box;  // goes through the box's rows
  for (std::size_t from = 0; from < elements.size(); from += row) {
    std::memcpy(tensor.data() + first_element(shape, line) * element_bytes, elements.data() + from, row);
    for (std::size_t i = shape.size() - 1; i-- > 0;) {
      if (++line.begin[i] < box.begin[i] + box.shape[i]) break;
      line.begin[i] = box.begin[i];
    }
  }
}

}  // namespace holdfast::store
