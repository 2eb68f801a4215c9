#include "muster/parallel/strategies/replica_coder.h"

#include <algorithm>
#include <cmath>

#include "muster/parallel/exchange/tensor_parts.h"

namespace muster::detail {
namespace {

/// The coding of a run of `elements` elements, of which `real` are of tensors, and the others padding.
struct CodingOf {
  std::int64_t elements, real;

  DeltaCoding operator()(const WholeReplicas&) const { return {}; }
  DeltaCoding operator()(const Bf16Codec&) const { return {.codec = DeltaCodec::Bf16}; }
  DeltaCoding operator()(const Int8Codec&) const { return {.codec = DeltaCodec::Int8}; }
  DeltaCoding operator()(const E3M0Codec&) const { return {.codec = DeltaCodec::E3M0}; }
  DeltaCoding operator()(const TopKCodec& topK) const {
    const double count = std::ceil(topK.share * static_cast<double>(real));
    const bool all = count >= static_cast<double>(real);  // then no positions are sent
    return {.codec = DeltaCodec::TopK, .largest = all ? elements : static_cast<std::int64_t>(count)};
  }
  DeltaCoding operator()(const PowerSgdCodec&) const {
    return {.codec = DeltaCodec::TopK, .largest = elements};
  }
};

std::span<const Segment> segmentsOf(const SharedBlock& block) {
  return block.segments ? std::span(block.segments->segments) : std::span<const Segment>();
}

/// Removes the first bytes of a message.
template <typename Byte>
std::span<Byte> take(std::span<Byte>& message, std::size_t bytes) {
  const auto taken = message.first(bytes);
  message = message.subspan(bytes);
  return taken;
}

/// Q of a matrix.
std::span<std::byte> rightOf(const LowRankMatrix& matrix, const Tensor& factors) {
  return bytesOf(part(factors, {matrix.right(), matrix.end()}));
}

}  // namespace

ReplicaCoder::ReplicaCoder(const Codec& codec, const SharedBlock& parameters, const Fragment& fragment)
    : type_(parameters.mergedCopy().dtype()) {
  const auto* const power = std::get_if<PowerSgdCodec>(&codec);
  for (const Slice slice : fragment.slices) {
    std::int64_t done = slice.begin;  // elements before it are in matrices or runs
    for (const Segment& segment : segmentsOf(parameters)) {
      const std::int64_t elements = segment.shape.elements(), end = segment.offset + elements;
      if (!power || segment.shape.rank() < 2 || segment.offset < slice.begin || end > slice.end) continue;
      const std::int64_t rows = segment.shape[0], columns = elements / std::max<std::int64_t>(1, rows);
      if (power->rank * (rows + columns) >= elements) continue;
      addRun(codec, parameters, {done, segment.offset});
      done = end;
      const LowRankMatrix matrix{
          .offset = segment.offset, .rows = rows, .columns = columns, .rank = power->rank};
      matrices_.push_back(matrix);
      left_.slices.push_back({matrix.offset, matrix.right()});
      right_.slices.push_back({matrix.right(), matrix.end()});
    }
    addRun(codec, parameters, {done, slice.end});
  }
}

void ReplicaCoder::addRun(const Codec& codec, const SharedBlock& parameters, Slice slice) {
  if (slice.length() == 0) return;
  std::int64_t real = parameters.segments ? 0 : slice.length();
  for (const Segment& segment : segmentsOf(parameters)) {
    const std::int64_t end = segment.offset + segment.shape.elements();
    real += std::max<std::int64_t>(0, std::min(end, slice.end) - std::max(segment.offset, slice.begin));
  }
  const DeltaCoding coding = std::visit(CodingOf{slice.length(), real}, codec);
  runs_.push_back({slice, coding, static_cast<std::size_t>(codedBytes(coding, slice.length(), type_))});
  bytes_ += runs_.back().bytes;
}

void ReplicaCoder::encode(const Sending& sending, MergeOps& ops) const {
  const auto values = sending.values, coded = ops.own(kCoded), residual = ops.own(kResidual);
  const bool packs = !sending.packed.empty();
  const auto eachSender = [&](auto use) {
    ops.eachReplica(values.front().elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (sending.weights[w] > 0) use(w, sending.packed, share.context);
    });
  };
  eachSender([&](std::size_t w, std::span<std::byte> packed, Context& context) {
    for (auto [slice, coding, bytes] : runs_) {
      coding.remember = sending.remember;
      combineOf(w, sending.base, coded[w], slice, context);
      if (packs)
        packDelta(coding, values[w], coded[w], residual[w], slice.begin, slice.end, take(packed, bytes),
                  context);
      else
        codeDelta(coding, values[w], coded[w], residual[w], slice.begin, slice.end, context);
    }
  });
  if (matrices_.empty()) return;
  const auto factors = ops.own(kFactors), means = ops.own(kMeans);
  eachSender([&](std::size_t w, std::span<std::byte>, Context& context) {
    for (const LowRankMatrix& matrix : matrices_) {
      combineOf(w, sending.base, coded[w], {matrix.offset, matrix.offset + matrix.rows * matrix.columns},
                context);
      projectDelta(matrix, values[w], coded[w], residual[w], means[w], factors[w], context);
    }
  });
  ops.mean(factors, sending.weights, means, left_);
  eachSender([&](std::size_t w, std::span<std::byte> packed, Context& context) {
    if (packs) take(packed, bytes_);
    for (const LowRankMatrix& matrix : matrices_) {
      codeLowRank(matrix, sending.remember, values[w], coded[w], residual[w], means[w], factors[w], context);
      if (!packs) continue;
      const auto right = rightOf(matrix, factors[w]);
      std::ranges::copy(right, take(packed, right.size()).begin());
    }
  });
  ops.mean(factors, sending.weights, means, right_);
}

void ReplicaCoder::unpack(std::span<const std::byte> packed, const Tensor& decoded, const Tensor& means,
                          const Tensor& factors, Context& context) const {
  for (const auto& [slice, coding, bytes] : runs_)
    unpackDelta(coding, take(packed, bytes), decoded, slice.begin, slice.end, context);
  for (const LowRankMatrix& matrix : matrices_) {
    const auto right = rightOf(matrix, factors);
    std::ranges::copy(take(packed, right.size()), right.begin());
    decodeLowRank(matrix, decoded, means, factors, context);
  }
}

}  // namespace muster::detail
