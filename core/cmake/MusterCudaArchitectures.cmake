# muster_cuda_architectures(<variable> <capabilities> <known>): what device code is made for. <capabilities> is
# nvidia-smi's list, a line like 9.0 for each GPU; <known> is what `nvcc --list-gpu-arch` prints, a line like
# compute_90 for each architecture. A kind of GPU that nvcc knows gets machine code, once; a newer one PTX of the highest
# architecture below it, which the driver compiles; one that is older than all that nvcc knows nothing. Where no GPU is
# left, <variable> becomes empty. Where <capabilities> is empty or no such list, for the GPUs that the program is shipped
# for: machine code of A100 and H100, and PTX for whatever comes later.
function(muster_cuda_architectures variable capabilities known)
  set(architectures 80-real 90-real 90-virtual)
  if(capabilities MATCHES "^[0-9]+\\.[0-9]+(\n[0-9]+\\.[0-9]+)*$")
    set(architectures "")
    string(REGEX MATCHALL "[0-9]+" known "${known}")
    string(REPLACE "." "" capabilities "${capabilities}")
    string(REPLACE "\n" ";" capabilities "${capabilities}")
    foreach(capability IN LISTS capabilities)
      set(highest 0)
      foreach(architecture IN LISTS known)
        if(architecture LESS_EQUAL capability AND architecture GREATER highest)
          set(highest ${architecture})
        endif()
      endforeach()
      # A list that nvcc does not print (before CUDA 11) excludes nothing.
      if(highest EQUAL capability OR known STREQUAL "")
        list(APPEND architectures ${capability}-real)
      elseif(highest GREATER 0)
        list(APPEND architectures ${highest}-virtual)
      endif()
    endforeach()
    list(REMOVE_DUPLICATES architectures)
  endif()
  set(${variable} "${architectures}" PARENT_SCOPE)
endfunction()
