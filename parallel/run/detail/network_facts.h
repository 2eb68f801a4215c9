#pragma once

#include <cstdint>
#include <string>

#include "muster/core/base/shape.h"
#include "muster/core/nn/network.h"
#include "muster/datasets/source/load_data.h"

namespace muster::detail {

/// What a named network needs to know of its data.
struct NetworkFacts {
  std::string name;          // of the network, for messages
  Shape input = {};          // of one example
  std::int64_t classes = 0;  // 0: numbers to predict
  std::int64_t numbers = 0;  // to predict
  std::int64_t symbols = 0;  // of a text: indices are below it; 0: the data are no text
  bool table = false;

  /// @throws InvalidArgument if the data are not pictures of classes.
  Shape image() const;
  /// @throws InvalidArgument if the data are no text.
  std::int64_t vocabulary() const;
};

/// Reads the data once for indices or one-hot labels, else their first batch.
NetworkFacts factsOf(std::string name, LoadedData& data);

/// A warning if a network that was chosen by its name predicts labels that are only 0 and 1 as numbers; else
/// "".
std::string numbersRemark(const Network& network, LoadedData& data);

}  // namespace muster::detail
