#pragma once

#include <cstdint>
#include <span>

#include "muster/core/data/input_description.h"
#include "muster/datasets/source/data_source.h"
#include "muster/datasets/table.h"

namespace muster::detail {

// Rows of a table that are read by the description of a trained model, `known`; empty: there is no model.

/// Does not read the columns that a model has left out: in these rows they may look otherwise, or be missing.
TableOptions withoutOmitted(TableOptions options, const Table& table, const InputDescription& known);

/// Refuses a table that means something else than a model's. What these rows do not show of a column does not
/// count, if all have one value, say, or too few for ranks.
/// @param described  these rows by themselves.
/// @throws InvalidArgument naming the column or class that differs, or the option that leaves a column out.
void requireSameColumns(InputDescription described, InputDescription known, const DataSource& d,
                        const Table& table, std::span<const std::int64_t> rows);

/// The model's description, to read dates with any separator in the order that the source says, if it does.
/// @throws InvalidArgument if the model reads dates in another one.
InputDescription withOrder(InputDescription known, const DataSource& d);

}  // namespace muster::detail
