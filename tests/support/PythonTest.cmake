# orrery_python_test(<name> COMMAND <script> <argument...> [PROCESSORS <n>] [TIMEOUT <s>]): a test of the whole program, by
# Debian's own Python, which has h5py. Exit code 77 means skipped.
set(ORRERY_SHARED ${PROJECT_SOURCE_DIR}/../shared CACHE PATH "real traces and other simulators' results, which some tests use")
find_program(ORRERY_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT ORRERY_PYTHON)
  set(ORRERY_PYTHON ${Python3_EXECUTABLE})
endif()

function(orrery_python_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "COMMAND" ${ARGN})
  if(NOT TARGET orrery)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_test(NAME ${name} COMMAND ${ORRERY_PYTHON} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS}
                       SKIP_RETURN_CODE 77)  # the longest start first
  set_property(TEST ${name} PROPERTY ENVIRONMENT
    ORRERY_BINARY=$<TARGET_FILE:orrery> ORRERY_SHARED=${ORRERY_SHARED} ORRERY_SCRATCH=${PROJECT_BINARY_DIR}/scratch
    ORRERY_SANITIZED=${ORRERY_SANITIZE} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1)
endfunction()
