#include "muster/parallel/exchange/slice.h"

#include <algorithm>
#include <numeric>

namespace muster {
namespace {

constexpr std::int64_t kAlignment = 16;  // float32 in 64 bytes: no two participants share a cache line

/// The offset of each segment, and the block's end.
std::vector<std::int64_t> boundaries(const SegmentTable& table) {
  std::vector<std::int64_t> all;
  for (const auto& segment : table.segments) all.push_back(segment.offset);
  all.push_back(table.elements);
  return all;
}

void append(std::vector<Slice>& slices, Slice slice) {
  if (!slices.empty() && slices.back().end == slice.begin)
    slices.back().end = slice.end;
  else
    slices.push_back(slice);
}

}  // namespace

Slice sliceOf(std::int64_t elements, int participant, int participants) {
  const std::int64_t units = (elements + kAlignment - 1) / kAlignment;
  const auto boundary = [&](int p) { return std::min(elements, units * p / participants * kAlignment); };
  return {boundary(participant), boundary(participant + 1)};
}

Slice partOf(Slice slice, std::int64_t elements, int participant, int participants) {
  const Slice own = sliceOf(elements, participant, participants);
  const std::int64_t begin = std::clamp(own.begin, slice.begin, slice.end);
  return {begin, std::clamp(own.end, begin, slice.end)};
}

std::int64_t Fragment::elements() const {
  std::int64_t sum = 0;
  for (const Slice slice : slices) sum += slice.length();
  return sum;
}

std::vector<Fragment> fragmentsOf(const SegmentTable& table, int count) {
  require(count >= 1, "fragments: there must be at least 1, got {}", count);
  const auto bounds = boundaries(table);
  const std::size_t segments = table.segments.size();
  const auto length = [&](std::size_t s) { return bounds[s + 1] - bounds[s]; };
  std::vector<std::size_t> bySize(segments);
  std::iota(bySize.begin(), bySize.end(), std::size_t{0});
  std::ranges::stable_sort(bySize, std::greater{}, length);
  std::vector<std::int64_t> sizes(std::min(segments, static_cast<std::size_t>(count)));
  std::vector<std::size_t> fragmentOf(segments);
  for (const std::size_t s : bySize) {
    fragmentOf[s] = static_cast<std::size_t>(std::ranges::min_element(sizes) - sizes.begin());
    sizes[fragmentOf[s]] += length(s);
  }
  std::vector<Fragment> fragments(sizes.size());
  for (std::size_t s = 0; s < segments; ++s)
    append(fragments[fragmentOf[s]].slices, {bounds[s], bounds[s + 1]});
  return fragments;
}

}  // namespace muster
