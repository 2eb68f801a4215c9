#include "examples/support/training_interrupt.h"

#include "examples/support/program.h"

namespace example {

TrainingInterrupt::TrainingInterrupt() {
  // First, because this sentence is also the one after a failed training.
  endOnInterrupt("Interrupted.");
  interrupt_.emplace();
  token_ = interrupt_->token();
}

void TrainingInterrupt::endWith(std::string_view sentence) {
  endOnInterrupt(sentence);  // first: it takes a signal that comes once there is no Interrupt
  interrupt_.reset();
}

}  // namespace example
