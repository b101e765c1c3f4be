# Compiler options of every target of this project. Warnings of the compilers that are tested (g++ 12, clang 14) are
# errors.
option(KUMI_WERROR "warnings of g++ 12 and clang 14 are errors" ON)
if(KUMI_WERROR AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.") OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")))
    set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers)
if(KUMI_SANITIZE STREQUAL "address")
    # Undefined behaviour is compiled to an illegal instruction or a trap. AddressSanitizer reports these as it reports
    # its own findings if ASAN_OPTIONS has handle_sigill=1:handle_sigtrap=1. To compile messages in words instead would
    # take g++ a quarter of its time.
    add_compile_options(-fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
    add_compile_definitions(KUMI_ADDRESS_SANITIZER)
elseif(KUMI_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
    add_compile_definitions(KUMI_THREAD_SANITIZER)
elseif(KUMI_SANITIZE)
    message(FATAL_ERROR "KUMI_SANITIZE is ${KUMI_SANITIZE}: say address or thread")
endif()
if(KUMI_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized) # g++ 12 says so of instrumented library code
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (KUMI_UNITY OR KUMI_TESTS))
    # To g++ a source that is compiled together with others looks like a header.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
