#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <vector>

namespace muster::fuzz {

/// Every change of two whole numbers of some documents at once, to sizes at which kernels take other ways.
class SizeSweep {
 public:
  explicit SizeSweep(std::vector<boost::json::value> documents);
  /// Nothing after the last.
  std::optional<boost::json::value> at(std::size_t number) const;

 private:
  struct Pair {
    std::size_t document, first, second;  ///< places
  };
  std::vector<boost::json::value> documents_;
  std::vector<Pair> pairs_;
};

}  // namespace muster::fuzz
