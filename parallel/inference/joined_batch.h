#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/nn/model.h"

namespace muster {

/// The numbers of examples that a model is compiled for, ascending: 1, and 1/16, 1/8, 1/4, 3/8, 1/2, 7/8 and
/// all of `limit`, rounded up; for a limit below 17 other parts instead of those that are equal. At most
/// eight. None for limit 0.
std::vector<std::int64_t> paddedSizes(std::int64_t limit);

/// Joins the features of several batches into one batch, and computes a model's output for it. Keeps the
/// features' memory between calls.
class JoinedBatch {
 public:
  /// Rows [begin, end) of a batch.
  struct Part {
    const Batch* batch;
    std::int64_t begin, end;
  };

  /// @param limit  how many examples are computed at once, in one of `paddedSizes(limit)`; 0: all, unpadded.
  /// @param twoPieces  compute in two pieces if they have more than an eighth fewer rows than one.
  explicit JoinedBatch(std::int64_t limit, bool twoPieces = false);

  /// Copies the parts' features and masks into one batch, in order. @param parts  joinable, at least one.
  void join(std::span<const Part> parts);
  const Batch& batch() const { return batch_; }

  /// @throws what the model throws; InvalidArgument unless its output has one row for each example.
  void compute(Model& model);
  /// Rows [begin, end) of the last computed output. They may share memory with other rows of it, but later
  /// outputs are in other memory.
  Tensor output(std::int64_t begin, std::int64_t end) const;

 private:
  /// Examples that are computed at once.
  struct Piece {
    std::int64_t begin, end;
    std::int64_t size;  ///< with padding
  };

  void copyRows(std::vector<NamedTensor> Batch::*tensors, std::span<const Part> parts);
  /// The number of rows with padding.
  std::int64_t sizeFor(std::int64_t examples) const {
    return sizes_.empty() ? examples : *std::ranges::lower_bound(sizes_, examples);
  }
  /// The size of the first of two pieces; 0 if one piece is better.
  std::int64_t firstOfTwo(std::int64_t examples) const;
  /// Makes the pieces.
  void divide(std::int64_t examples);

  const std::vector<std::int64_t> sizes_;  // empty: any
  const bool twoPieces_;
  Batch batch_, piece_;
  std::vector<Piece> pieces_;
  std::vector<Tensor> outputs_;  // [piece]
};

}  // namespace muster
