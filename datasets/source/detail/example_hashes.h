#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/data/input_description.h"
#include "muster/datasets/image_set.h"
#include "muster/datasets/source/data_contents.h"
#include "muster/datasets/source/data_source.h"
#include "muster/datasets/source/detail/tensor_file.h"
#include "muster/datasets/table.h"

namespace muster::detail {

/// A hash of bytes, with another one before it, for data that are not made to collide.
std::uint64_t hashOf(std::span<const std::byte> bytes, std::uint64_t before = 0);

/// [row of `rows`] Hashes of the cells that the description names, with the label. Texts are compared, so
/// that they do not depend on the machine or on other rows.
std::vector<std::uint64_t> hashesOf(const Table& table, const InputDescription& description,
                                    std::span<const std::int64_t> rows);
/// [image]
std::vector<std::uint64_t> hashesOf(const ImageSet& images);
/// [example]
std::vector<std::uint64_t> hashesOf(const TensorFile& examples);

/// Hashes of the examples of each part of some data.
struct PartHashes {
  std::vector<std::uint64_t> train = {}, validation = {}, test = {};  ///< [example]
  bool ownTest = false;  ///< the examples to test with are not drawn from those to train with
};

DataContents contentsOf(const PartHashes& hashes);

/// What the examples are called: row, image or example.
std::string_view nounOf(const DataSource& source);

/// A warning that the test data of one's own are the training data, or share more examples with them than
/// chance makes, as the repeats in both show. "" if they do not.
std::string sharedRemark(const DataSource& source, const PartHashes& hashes);
/// The warning that they are the training data.
std::string sameRemark(const DataSource& source);

}  // namespace muster::detail
