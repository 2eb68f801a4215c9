#pragma once

#include <boost/json/value.hpp>

#include "tests/fuzz/vocabulary.h"
#include "tests/support/standard.h"

namespace muster::fuzz {

/// Every change of one place of some documents: each field with each hostile value, each value of the
/// vocabulary and each value of its own document; left out, repeated, exchanged. A change of equal fields is
/// made in the first document that has them.
class JsonSweep {
 public:
  JsonSweep(std::vector<boost::json::value> documents, const Vocabulary& vocabulary);

  struct Changed {
    std::size_t document;  ///< which one was changed
    boost::json::value value;
  };
  /// Change `number`, from 0; nothing after the last.
  std::optional<Changed> at(std::size_t number) const;
  std::size_t size() const { return changes_.size(); }

 private:
  struct Change {
    std::size_t document, place;
    boost::json::value value;
  };
  std::vector<boost::json::value> documents_;
  std::vector<Change> changes_;
};

}  // namespace muster::fuzz
