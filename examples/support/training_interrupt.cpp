#include "examples/support/training_interrupt.h"

#include "examples/support/program.h"

namespace example {

TrainingInterrupt::TrainingInterrupt(bool saves) {
  // First, because this sentence is also the one after a failed training.
  endOnInterrupt("Interrupted.");
  if (saves)
    interrupt_.emplace();
  else
    interrupt_.emplace(
        "Interrupted: the current step is finished, then the training ends. The network is not saved, "
        "because no file is named for it. Interrupt again to quit at once.");
  token_ = interrupt_->token();
}

void TrainingInterrupt::endWith(std::string_view sentence) {
  endOnInterrupt(sentence);  // first: it takes a signal that comes once there is no Interrupt
  interrupt_.reset();
}

}  // namespace example
