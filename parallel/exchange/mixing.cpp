#include "muster/parallel/exchange/mixing.h"

#include <cmath>

#include "muster/core/base/error.h"

namespace muster {

Mixing::Mixing(std::size_t workers, std::size_t shares) : rows_(workers) {
  shares_.reserve(shares);
  merged_.reserve(workers);
}

void Mixing::clear() {
  shares_.clear();
  std::ranges::fill(rows_, Range{});
}

void Mixing::setRow(std::size_t worker, std::span<const MixingShare> shares) {
  require(worker < rows_.size(), "mixing: there is no worker {} among {}", worker, rows_.size());
  require(!shares.empty(), "mixing: the row of worker {} is empty", worker);
  const std::size_t begin = shares_.size();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    require(shares[i].worker < rows_.size() && (i == 0 || shares[i].worker > shares[i - 1].worker) &&
                std::isfinite(shares[i].factor),
            "mixing: the row of worker {} has worker {} with factor {}; workers must ascend, below {}, and "
            "factors be finite",
            worker, shares[i].worker, shares[i].factor, rows_.size());
    if (shares[i].factor != 0) shares_.push_back(shares[i]);
  }
  require(shares_.size() > begin, "mixing: the row of worker {} has factors of 0 alone", worker);
  rows_[worker] = {begin, shares_.size()};
}

void Mixing::setMerged(std::span<const double> weights) {
  double sum = 0;
  for (const double weight : weights) {
    require(std::isfinite(weight) && weight >= 0, "mixing: the merged copy has a weight {}", weight);
    sum += weight;
  }
  require(weights.empty() || (weights.size() == rows_.size() && sum > 0),
          "mixing: the merged copy has {} weights with a sum of {}, for {} workers", weights.size(), sum,
          rows_.size());
  merged_.assign(weights.begin(), weights.end());
}

}  // namespace muster
