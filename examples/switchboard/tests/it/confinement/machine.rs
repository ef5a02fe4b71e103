//! Programs of machine code for Linux on x86-64 that make one system call.
#![cfg(target_arch = "x86_64")]

/// Where the program is loaded.
const BASE: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;

/// Makes this call; its exit code is the error's number.
pub(super) fn call(number: u32, arguments: [u32; 4]) -> Vec<u8> {
    let [first, second, third, fourth] = arguments;
    // mov rdi, rsi, rdx and r10 with their signs; mov eax; syscall.
    program(&[
        (&[0x48, 0xc7, 0xc7], Some(first)),
        (&[0x48, 0xc7, 0xc6], Some(second)),
        (&[0x48, 0xc7, 0xc2], Some(third)),
        (&[0x49, 0xc7, 0xc2], Some(fourth)),
        (&[0xb8], Some(number)),
        (&[0x0f, 0x05], None),
    ])
}

/// Makes this call of a 32-bit program.
pub(super) fn call_32(number: u32, arguments: [u32; 3]) -> Vec<u8> {
    let [first, second, third] = arguments;
    // mov ebx, ecx, edx and eax; int 0x80.
    program(&[
        (&[0xbb], Some(first)),
        (&[0xb9], Some(second)),
        (&[0xba], Some(third)),
        (&[0xb8], Some(number)),
        (&[0xcd, 0x80], None),
    ])
}

fn program(steps: &[(&[u8], Option<u32>)]) -> Vec<u8> {
    let mut code = Vec::new();
    // neg eax; mov edi, eax; mov eax, 60 (exit); syscall.
    let exit: &[(&[u8], Option<u32>)] = &[
        (&[0xf7, 0xd8, 0x89, 0xc7, 0xb8], Some(60)),
        (&[0x0f, 0x05], None),
    ];
    for (operation, value) in steps.iter().chain(exit) {
        code.extend_from_slice(operation);
        code.extend(value.iter().flat_map(|value| value.to_le_bytes()));
    }
    let length = HEADERS + u64::try_from(code.len()).unwrap();

    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, values: &[u16]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    // An executable for this machine, of version 1, which starts behind the headers.
    half(&mut file, &[2, 62, 1, 0]);
    for value in [BASE + HEADERS, 64, 0] {
        file.extend(value.to_le_bytes());
    }
    // No flags; the sizes of the headers, of which one tells what to load.
    half(&mut file, &[0, 0, 64, 56, 1, 0, 0, 0]);
    // Load it, to be read and executed: from where, to where, how much, aligned to pages.
    half(&mut file, &[1, 0, 5, 0]);
    for value in [0, BASE, BASE, length, length, 0x1000] {
        file.extend(value.to_le_bytes());
    }
    file.extend(code);
    file
}
