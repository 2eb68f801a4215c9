#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/core/data/in_memory.h"
#include "muster/core/data/input_description.h"
#include "muster/core/tensor/tensor.h"
#include "muster/datasets/table.h"

namespace muster {

/// Rows of a table as a network reads them: float32 [N, features]. Columns are found by their names, in any
/// order; others are not read. Words without a feature are 0 in all of them, or 1 in the one of the others. A
/// word among numbers or dates counts as missing, as in a training.
/// @throws FileError naming all columns that the table lacks, or the line and column of a number with a
///         decimal comma, of a date in another order or with a separator that the training did not have if it
///         may have another one, or of the first word among numbers or dates, where these are three or more,
///         and over half of the column's values; for a table without names of columns that has more or fewer
///         than the training's.
Tensor tableFeatures(const InputDescription& description, const Table& table,
                     std::span<const std::int64_t> rows);

/// For held-out rows of the training's own table: adds their dates' separators to the description, with a
/// warning if these leave the order of a date unsure, so that `tableFeatures` reads them in the training's
/// order.
void addDateSeparators(InputDescription& description, const Table& table, std::span<const std::int64_t> rows);

/// The labels: int64 [N] classes or, for a regression, float32 [N, targets], (value - mean) / scale.
/// @throws FileError naming the line of a label that is missing, unknown or no number.
Tensor tableLabels(const InputDescription& description, const Table& table,
                   std::span<const std::int64_t> rows);

/// Rows with labels in batches; the last batch of an epoch may be smaller. The iterator has the description:
/// a model with another one refuses it. Read rows for a trained model by its own, `inputDescription()`.
/// @param shuffleSeed  if given, each epoch is shuffled by (seed, epoch).
InMemoryDataSetIterator tableIterator(const InputDescription& description, const Table& table,
                                      std::span<const std::int64_t> rows, std::int64_t batch,
                                      std::optional<std::uint64_t> shuffleSeed = std::nullopt);

/// 0 .. rows-1
std::vector<std::int64_t> allRows(const Table& table);

}  // namespace muster
