#pragma once

#include "tests/fuzz/json_documents.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Changes one place of a JSON value: a hostile number, a value of another type, a part left out, repeated,
/// exchanged, renamed or nested deeply.
/// @param vocabulary  what a field may be replaced by.
void mutateJson(boost::json::value& value, Draw& draw, const Vocabulary& vocabulary = {});

/// Mutates a JSON text several times; text that is not JSON byte by byte.
std::string mutateJsonText(std::string_view text, Draw& draw, const Vocabulary& vocabulary = {});

/// Mutates one line of a text with a JSON value in each, or leaves out, repeats or exchanges lines.
std::string mutateJsonLines(std::string_view text, Draw& draw);

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
  /// Change `number`, from 0, below `size()`.
  Changed at(std::size_t number) const;
  std::size_t size() const { return changes_.size(); }
  /// The changed documents as texts. The sweep must live as long.
  Sweep texts() const;

 private:
  struct Change {
    std::size_t document, place;
    boost::json::value value;
  };
  std::vector<boost::json::value> documents_;
  std::vector<Change> changes_;
};

/// Every change of two whole numbers of some documents at once, to sizes at which kernels take other ways.
Sweep sizeSweep(std::vector<boost::json::value> documents);

}  // namespace muster::fuzz
