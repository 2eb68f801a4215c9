#include "tests/fuzz/size_sweep.h"

#include "tests/fuzz/json_places.h"

namespace muster::fuzz {
namespace {

constexpr std::array<std::int64_t, 9> kSizes{1, 2, 3, 4, 7, 8, 16, 17, 33};

}  // namespace

SizeSweep::SizeSweep(std::vector<boost::json::value> documents) : documents_(std::move(documents)) {
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    std::vector<std::size_t> numbers;
    const auto places = placesIn(documents_[d]);
    for (std::size_t p = 0; p < places.size(); ++p)
      if (places[p].value->is_int64() && places[p].field != "version" && places[p].field != "seed")
        numbers.push_back(p);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) pairs_.push_back({d, numbers[j], numbers[i]});
  }
}

std::optional<boost::json::value> SizeSweep::at(std::size_t number) const {
  constexpr std::size_t kOfPair = kSizes.size() * kSizes.size();
  if (number >= pairs_.size() * kOfPair) return std::nullopt;
  const Pair& pair = pairs_[number / kOfPair];
  boost::json::value document = documents_[pair.document];
  const auto places = placesIn(document);
  *places[pair.first].value = kSizes[number % kOfPair / kSizes.size()];
  *places[pair.second].value = kSizes[number % kSizes.size()];
  return document;
}

}  // namespace muster::fuzz
