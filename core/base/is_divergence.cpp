#include "muster/core/base/is_divergence.h"

#include "muster/core/base/error.h"

namespace muster {

bool isDivergence(const std::exception_ptr& failure) {
  if (!failure) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const NonFiniteScore&) {
    return true;
  } catch (const TrainingError& error) {
    return isDivergence(error.cause());
  } catch (...) {
    return false;
  }
}

}  // namespace muster
