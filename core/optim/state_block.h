#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/tensor/tensor.h"

namespace muster {
/// What a block of a model holds.
enum class BlockKind { Parameters, Gradients, Statistics, UpdaterState, Counters };

/// How a merge treats a block.
enum class MergeRule {
  Average,  ///< the weighted mean of the replicas
  Moments,  ///< first half means, second half variances: merged as moments of the mixture
  Keep,     ///< every replica keeps its own values
  Reset,    ///< zero after every merge
};

/// One tensor in a block.
struct Segment {
  std::string name;         ///< for example `conv1.weight`
  Shape shape;              ///< canonical: OIHW, [out, in], [out]
  std::int64_t offset = 0;  ///< first element in the block; a multiple of 16 (64 bytes)
  double learningRateScale = 1;
  bool regularised = true;  ///< takes L1, L2 and weight decay (weights do, biases do not)
  bool frozen = false;      ///< never updated
};

/// The segments of a block, in order, and the block's length.
struct SegmentTable {
  std::vector<Segment> segments;
  std::int64_t elements = 0;  ///< of the whole block, including padding

  /// Appends a segment after the last one, aligned to 64 bytes, and sets its `offset`.
  void add(Segment segment);
  /// @return nullptr if there is none of that name.
  const Segment* find(std::string_view name) const;
};

/// A part of a model's state: contiguous numbers, which layers view. A merge, an update and a checkpoint are
/// each one pass over a block. The padding between segments is zero and stays zero.
struct StateBlock {
  std::string name;  ///< "parameters", "gradients", "velocity", ...
  BlockKind kind = BlockKind::Parameters;
  MergeRule merge = MergeRule::Average;
  Tensor values;  ///< [elements], RowMajor; float32, int64 for counters, float64 in references
  std::shared_ptr<const SegmentTable> segments;

  /// The view of one segment. @throws InvalidArgument if there is none of that name.
  Tensor segment(std::string_view segmentName) const;
  Tensor segment(const Segment& segment) const { return values.slice(segment.offset, segment.shape); }

  /// A block of zeros with these segments.
  static StateBlock zeros(std::string name, BlockKind kind, MergeRule merge,
                          std::shared_ptr<const SegmentTable> segments, DType dtype = DType::Float32,
                          Device device = Device::cpu());
};

}  // namespace muster
