#include "muster/parallel/strategies/replica_coder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/core/ops/linear_combination.h"
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
  /// For the parts that are not matrices.
  DeltaCoding operator()(const PowerSgdCodec&) const {
    return {.codec = DeltaCodec::TopK, .largest = elements};
  }
};

std::span<const Segment> segmentsOf(const SegmentTable* table) {
  return table ? std::span(table->segments) : std::span<const Segment>();
}

}  // namespace

void setBase(std::initializer_list<Operand> base, std::size_t w, const Tensor& into, Slice slice,
             Context& context) {
  std::array<Term, 4> terms;
  std::size_t count = 0;
  for (const auto& [factor, values] : base) terms.at(count++) = {factor, values[w]};
  linearCombination(std::span(terms).first(count), into, slice.begin, slice.end, context);
}

void ReplicaCoder::begin(const SharedBlock& parameters, std::span<const Fragment> fragments) {
  segments_ = parameters.segments;
  type_ = parameters.mergedCopy().dtype();
  matrices_.clear();
  if (const auto* power = std::get_if<PowerSgdCodec>(&codec_))
    for (const Fragment& fragment : fragments)
      matrices_.push_back(matricesOf(segments_.get(), fragment, power->rank));
}

ReplicaCoder::Matrices ReplicaCoder::matricesOf(const SegmentTable* segments, const Fragment& fragment,
                                                std::int64_t rank) {
  Matrices all{.fragment = &fragment, .matrices = {}, .left = {}, .right = {}, .others = {}};
  for (const Slice slice : fragment.slices) {
    std::int64_t done = slice.begin;  // elements before it are in matrices or others
    for (const Segment& segment : segmentsOf(segments)) {
      const std::int64_t elements = segment.shape.elements();
      if (segment.offset < slice.begin || segment.offset + elements > slice.end || segment.shape.rank() < 2)
        continue;
      const LowRankMatrix matrix{.offset = segment.offset,
                                 .rows = segment.shape[0],
                                 .columns = elements / std::max<std::int64_t>(1, segment.shape[0]),
                                 .rank = rank};
      if (elements == 0 || rank * (matrix.rows + matrix.columns) >= elements) continue;
      if (done < segment.offset) all.others.slices.push_back({done, segment.offset});
      done = segment.offset + elements;
      all.matrices.push_back(matrix);
      all.left.slices.push_back({matrix.offset, matrix.right()});
      all.right.slices.push_back({matrix.right(), matrix.end()});
    }
    if (done < slice.end) all.others.slices.push_back({done, slice.end});
  }
  return all;
}

const ReplicaCoder::Matrices* ReplicaCoder::findMatrices(const Fragment& fragment) const {
  const auto found = std::ranges::find(matrices_, &fragment, &Matrices::fragment);
  return found == matrices_.end() ? nullptr : &*found;
}

std::int64_t ReplicaCoder::codedBytesOf(const Fragment& fragment) const {
  std::int64_t bytes = 0;
  for (const Slice slice : fragment.slices) bytes += codedBytes(codingOf(slice), slice.length(), type_);
  return bytes;
}

std::int64_t ReplicaCoder::packedBytes(const Fragment& fragment) const {
  const Matrices* const matrices = findMatrices(fragment);
  if (matrices == nullptr) return codedBytesOf(fragment);
  return codedBytesOf(matrices->others) +
         matrices->right.elements() * static_cast<std::int64_t>(sizeOf(type_));
}

DeltaCoding ReplicaCoder::codingOf(Slice slice) const {
  std::int64_t real = segments_ ? 0 : slice.length();
  for (const Segment& segment : segmentsOf(segments_.get())) {
    const std::int64_t end = segment.offset + segment.shape.elements();
    real += std::max<std::int64_t>(0, std::min(end, slice.end) - std::max(segment.offset, slice.begin));
  }
  return std::visit(CodingOf{slice.length(), real}, codec_);
}

std::int64_t ReplicaCoder::encode(const Sending& sending, const Fragment& fragment, MergeOps& ops) const {
  const Matrices* const matrices = findMatrices(fragment);
  return matrices ? encodeMatrices(sending, *matrices, ops) : encodeSlices(sending, fragment, ops);
}

std::int64_t ReplicaCoder::encodeSlices(const Sending& sending, const Fragment& fragment,
                                        MergeOps& ops) const {
  const auto coded = ops.own(kCoded), residual = ops.own(kResidual), values = sending.values;
  const auto packed = sending.packed;
  ops.eachReplica(values.front().elements(), [&](const Share& share) {
    for (const std::size_t w : share.workers) {
      if (sending.weights[w] == 0) continue;
      std::size_t done = 0;
      for (const auto [begin, end] : fragment.slices) {
        DeltaCoding coding = codingOf({begin, end});
        coding.remember = sending.remember;
        setBase(sending.base, w, coded[w], {begin, end}, share.context);
        if (packed.empty()) {
          codeDelta(coding, values[w], coded[w], residual[w], begin, end, share.context);
          continue;
        }
        const auto bytes = static_cast<std::size_t>(codedBytes(coding, end - begin, type_));
        packDelta(coding, values[w], coded[w], residual[w], begin, end, packed.subspan(done, bytes),
                  share.context);
        done += bytes;
      }
    }
  });
  return codedBytesOf(fragment);
}

std::int64_t ReplicaCoder::encodeMatrices(const Sending& sending, const Matrices& matrices,
                                          MergeOps& ops) const {
  const auto coded = ops.own(kCoded), residual = ops.own(kResidual), values = sending.values;
  const auto packed = sending.packed;
  const auto factors = ops.own(kFactors), means = ops.own(kMeans);
  const auto others = static_cast<std::size_t>(codedBytesOf(matrices.others));
  Sending slices = sending;
  slices.packed = packed.first(packed.empty() ? 0 : others);
  encodeSlices(slices, matrices.others, ops);
  const auto forEach = [&](auto use) {
    ops.eachReplica(values.front().elements(), [&](const Share& share) {
      for (const std::size_t w : share.workers)
        if (sending.weights[w] > 0)
          for (const LowRankMatrix& matrix : matrices.matrices) use(matrix, w, share.context);
    });
  };
  forEach([&](const LowRankMatrix& matrix, std::size_t w, Context& context) {
    setBase(sending.base, w, coded[w], {matrix.offset, matrix.offset + matrix.rows * matrix.columns},
            context);
    projectDelta(matrix, values[w], coded[w], residual[w], means[w], factors[w], context);
  });
  ops.mean(factors, sending.weights, means, matrices.left);
  std::size_t done = others;
  forEach([&](const LowRankMatrix& matrix, std::size_t w, Context& context) {
    codeLowRank(matrix, sending.remember, values[w], coded[w], residual[w], means[w], factors[w], context);
    if (packed.empty()) return;
    const auto q = bytesOf(part(factors[w], {matrix.right(), matrix.end()}));
    std::ranges::copy(q, packed.subspan(done).begin());
    done += q.size();
  });
  ops.mean(factors, sending.weights, means, matrices.right);
  return matrices.others.elements() * static_cast<std::int64_t>(sizeOf(type_));
}

void ReplicaCoder::unpack(const Fragment& fragment, std::span<const std::byte> packed, const Tensor& decoded,
                          const Tensor& means, const Tensor& factors, Context& context) const {
  const auto take = [&](std::size_t bytes) {
    const auto taken = packed.first(bytes);
    packed = packed.subspan(bytes);
    return taken;
  };
  const Matrices* const matrices = findMatrices(fragment);
  for (const auto [begin, end] : (matrices ? matrices->others : fragment).slices) {
    const DeltaCoding coding = codingOf({begin, end});
    const auto bytes = static_cast<std::size_t>(codedBytes(coding, end - begin, type_));
    unpackDelta(coding, take(bytes), decoded, begin, end, context);
  }
  if (matrices == nullptr) return;
  for (const LowRankMatrix& matrix : matrices->matrices) {
    const auto q = bytesOf(part(factors, {matrix.right(), matrix.end()}));
    std::ranges::copy(take(q.size()), q.begin());
    decodeLowRank(matrix, decoded, means, factors, context);
  }
}

}  // namespace muster::detail
