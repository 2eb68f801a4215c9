#include <muster/core/tensor/tensor.h>

int main() {
  return muster::Tensor::zeros({2, 3}).elements() == 6 ? 0 : 1;
}
