#include "muster/core/base/host_name.h"

#include <unistd.h>

#include <array>

namespace muster {

std::string hostName() {
  std::array<char, 256> name{};  // a longer name may come without the byte that ends it
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace muster
