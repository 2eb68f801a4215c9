#include "muster/core/base/error.h"

namespace muster {

std::string describe(const std::exception_ptr& exception) {
  try {
    if (exception) std::rethrow_exception(exception);
    return "no exception";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace muster
