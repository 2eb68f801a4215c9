#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/datasets/source/data_source.h"

namespace muster {

/// What some examples are, by checksums of what their files say of them.
struct ExampleContents {
  std::int64_t examples = 0;
  std::string ordered = {};    ///< changes with an example, their order and the parts they are dealt to
  std::string unordered = {};  ///< changes with an example alone

  friend bool operator==(const ExampleContents&, const ExampleContents&) = default;
};

/// What a model has learned that a training began with.
struct EarlierTraining {
  std::string model = {};  ///< its file
  DataSource data = {};    ///< without a type: the file does not say
  ExampleContents training = {};
};

/// What the data of a run are, by which other contents of the same files are found. Neither batches nor the
/// order of a training change it.
struct DataContents {
  ExampleContents training = {};  ///< the examples of the training data, also those that are held out of them
  ExampleContents test = {};      ///< those of a test set of its own; no examples: there is none
  /// The trainings of the model that this one began with, and of those before it; the latest first.
  std::vector<EarlierTraining> earlier = {};

  std::string toJson() const;
  /// @throws InvalidArgument for a text that `toJson` has not written.
  static DataContents parse(std::string_view json);
};

}  // namespace muster
