#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "muster/core/data/data_set_iterator.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/temporary_directory.h"

namespace muster::test {

/// Data sets on the disk; those in published formats have random first examples.
struct DataFiles {
  DataFiles();
  TemporaryDirectory directory;
};

/// Iterators, of which each may read an earlier one.
struct DataChain {
  DataChain() = default;
  DataChain(const DataChain&) = delete;
  DataChain& operator=(const DataChain&) = delete;
  ~DataChain() {
    while (!parts.empty()) parts.pop_back();
  }
  template <typename Iterator, typename... Arguments>
  Iterator& add(Arguments&&... arguments) {
    auto part = std::make_unique<Iterator>(std::forward<Arguments>(arguments)...);
    Iterator& added = *part;
    parts.push_back(std::move(part));
    return added;
  }
  std::vector<std::unique_ptr<DataSetIterator>> parts;
};

/// Iterators for the training of a small network, of 4 to 11 batches per epoch.
struct DataSource {
  std::string name;
  std::function<void(const DataFiles&, DataChain&)> add;
  MultiLayerConfiguration network;
};

/// Every iterator of the library, alone and around others, and iterators of a user. MNIST's own files only if
/// MUSTER_DATA_DIR names their directory; the other data of its kind are read by the same code.
std::vector<DataSource> everyIterator();

}  // namespace muster::test
