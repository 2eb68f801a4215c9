#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/datasets/source/data_source.h"
#include "muster/datasets/source/detail/example_hashes.h"
#include "muster/datasets/source/load_data.h"

namespace muster::detail {

/// Deals the first `limit` examples to training, validation and, without a test set of their own, test.
/// @param classes  [example] Each part has them in equal shares.
/// @throws InvalidArgument if none is left to train with; FileError if there are none.
DataRows dealRows(const DataSource& source, std::span<const std::int64_t> classes, std::int64_t limit,
                  bool ownTest);

/// A warning for each part that is held out of the training data and has no example of some classes, of which
/// there are two examples or more; with the number to hold out that gives it one of each.
/// @param classes  [example] of the training data.  @param names  [class]; empty: they have numbers.
std::vector<std::string> lackingClasses(const DataSource& source, std::span<const std::int64_t> classes,
                                        const DataRows& rows, std::span<const std::string> names);

/// Hashes of the examples that each part has.
/// @param train  [example] of the training data.  @param test  those of a test set of its own; null: none.
PartHashes partHashes(const DataRows& rows, std::span<const std::uint64_t> train,
                      const std::vector<std::uint64_t>* test);

}  // namespace muster::detail
