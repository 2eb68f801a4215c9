#pragma once

#include <boost/json/value.hpp>

#include "tests/fuzz/container.h"
#include "tests/fuzz/json_sweep.h"

namespace muster::fuzz {

/// The configuration in a model file's header; null if it has none.
boost::json::value* configurationIn(Container& file);
/// The file with another text as its configuration, and with its checksums.
Bytes withConfiguration(Container file, std::string_view text);

/// Every change of one place of a model file's header, broken JSON for its parts, and files of other formats.
class HeaderSweep {
 public:
  explicit HeaderSweep(Container file);
  /// Nothing after the last.
  std::optional<Bytes> at(std::size_t number) const;

 private:
  Container file_;
  JsonSweep changes_;
};

}  // namespace muster::fuzz
