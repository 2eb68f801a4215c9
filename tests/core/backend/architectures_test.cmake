include("${CMAKE_CURRENT_LIST_DIR}/../../../core/cmake/MusterCudaArchitectures.cmake")

function(expect capabilities expected)
  muster_cuda_architectures(got "${capabilities}" "${known}")
  if(NOT got STREQUAL expected)
    message(FATAL_ERROR "for \"${capabilities}\": expected ${expected}, got ${got}")
  endif()
endfunction()

# As printed by nvcc 13.0, not in numerical order.
set(known "compute_75\ncompute_80\ncompute_86\ncompute_90\ncompute_100\ncompute_110\ncompute_103\ncompute_120")
set(shipped "80-real;90-real;90-virtual")
expect("" "${shipped}")
expect("8.6" "86-real")
expect("9.0\n9.0" "90-real")
expect("8.0\n12.0\n8.0" "80-real;120-real")
expect("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." "${shipped}")
expect("[N/A]" "${shipped}")
# GPUs newer than nvcc's list, older than the list, and one of each.
expect("13.0" "120-virtual")
expect("10.4\n10.3" "103-virtual;103-real")
expect("7.0" "")
expect("7.0\n8.0" "80-real")

set(known "")
expect("7.0" "70-real")
