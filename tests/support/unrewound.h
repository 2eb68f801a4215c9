#pragma once

#include "muster/core/data/data_set_iterator.h"

namespace muster::test {

/// A stream: `reset` does not rewind it.
class Unrewound final : public DataSetIterator {
 public:
  explicit Unrewound(DataSetIterator& data) : data_(data) { data.reset(0); }
  void reset(std::int64_t) override {}
  bool next(Batch& batch) override { return data_.next(batch); }

 private:
  DataSetIterator& data_;
};

}  // namespace muster::test
