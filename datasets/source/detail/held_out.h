#pragma once

// What a data source says of its examples: which are held out, in which order the others come.

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/datasets/source/data_source.h"
#include "muster/datasets/source/detail/data_fields.h"

namespace muster::detail {

/// The seed of the order of the training examples; none without shuffling.
inline std::optional<std::uint64_t> shuffleSeed(const DataSource& d) {
  return d.shuffle ? std::optional(static_cast<std::uint64_t>(d.seed)) : std::nullopt;
}

/// The seed that draws the examples to hold out.
inline std::uint64_t splitSeed(const DataSource& d) {
  return static_cast<std::uint64_t>(d.splitSeed < 0 ? d.seed : d.splitSeed);
}

/// Whether the files are the user's, not those of a published data set, or drawn.
inline bool isOfOwnFiles(const DataSource& d) {
  return isOneOf(d.type, {"csv", "images", "safetensors", "idx"});
}

/// Whether `testExamples` are held out of the training examples, and do not limit those of a test set.
inline bool drawsTests(const DataSource& d) {
  return isOfOwnFiles(d) && d.test.empty() && d.testImages.empty();
}

/// So many examples are to be held out that none is left to train with.
class TooManyHeldOut : public InvalidArgument {
 public:
  /// @param field  without "data.".  @param there  as in "there are 20 examples in all".
  TooManyHeldOut(std::string_view field, std::int64_t DataSource::*number, const DataSource& d,
                 std::string there)
      : InvalidArgument(fmt::format("data.{} is {}, and {}", field, d.*number, there)),
        field_(field),
        number_(number),
        there_(std::move(there)) {}

  const std::string& field() const { return field_; }
  std::int64_t numberIn(const DataSource& source) const { return source.*number_; }
  const std::string& there() const { return there_; }

 private:
  std::string field_;
  std::int64_t DataSource::*number_;
  std::string there_;
};

/// Number of examples left for training and validation, if there is no test set. @throws TooManyHeldOut if
/// none is left.
inline std::int64_t untestedPart(const DataSource& d, std::int64_t examples) {
  if (d.testExamples >= examples)
    throw TooManyHeldOut("testExamples", &DataSource::testExamples, d,
                         fmt::format("there are {} examples in all", examples));
  return examples - d.testExamples;
}

/// Number of examples left for training. @throws TooManyHeldOut if none is left.
inline std::int64_t trainingPart(const DataSource& d, std::int64_t examples) {
  if (d.validationExamples >= examples)
    throw TooManyHeldOut("validationExamples", &DataSource::validationExamples, d,
                         fmt::format("there are {} examples to train and to validate with", examples));
  return examples - d.validationExamples;
}

/// @throws InvalidArgument if the source asks to leave out a last batch that is not full, and no other is
/// left.
/// @param examples  to train with; 0: not known.
inline void requireFullBatch(const DataSource& d, std::int64_t examples) {
  require(
      !d.dropLast || examples == 0 || examples >= d.batch,
      "data.dropLast leaves out a batch that is not full, and data.batch {} is larger than the {} to train "
      "with, so none is left",
      d.batch, plural(examples, "example"));
}

/// Leaves out the last batch of an epoch if it is not full, if the source asks for it. @throws
/// InvalidArgument if no batch is left.
void dropLast(const DataSource& d, auto& train) {
  requireFullBatch(d, train.examples().value_or(0));
  train.setDropLast(d.dropLast);
}

}  // namespace muster::detail
