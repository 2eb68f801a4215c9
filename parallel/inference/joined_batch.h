#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/nn/model.h"

namespace muster {

/// The numbers of examples that a model is compiled for, ascending: `limit`, its halves, and 1; at most six.
std::vector<std::int64_t> paddedSizes(std::int64_t limit);

/// Joins the features of several batches into one batch, and computes a model's output for it. Keeps its
/// memory between calls.
class JoinedBatch {
 public:
  /// Rows [begin, end) of a batch.
  struct Part {
    const Batch* batch;
    std::int64_t begin, end;
  };

  /// @param limit  how many examples are computed at once, in one of `paddedSizes(limit)`; 0: all, unpadded.
  explicit JoinedBatch(std::int64_t limit);

  /// Copies the parts' features and masks into one batch, in order. @param parts  joinable, at least one.
  void join(std::span<const Part> parts);
  const Batch& batch() const { return batch_; }

  /// @throws what the model throws; InvalidArgument unless its output has one row for each example.
  void compute(Model& model);
  /// Rows [begin, end) of the last computed output, copied.
  Tensor output(std::int64_t begin, std::int64_t end) const;

 private:
  /// Examples that are computed at once.
  struct Piece {
    std::int64_t begin, end;
    std::int64_t size;  ///< with padding
  };

  void copyRows(std::vector<NamedTensor> Batch::*tensors, std::span<const Part> parts);

  const std::vector<std::int64_t> sizes_;  // empty: any
  Batch batch_, piece_;
  std::vector<Piece> pieces_;
  std::vector<Tensor> outputs_;  // [piece]
};

}  // namespace muster
