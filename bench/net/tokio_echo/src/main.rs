//! tokio_echo PORT: an echo server on tokio's current-thread runtime, a task a connection.

use std::io;
use std::net::SocketAddr;
use std::process::exit;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;

const BUFFER_BYTES: usize = 512;
const BACKLOG: u32 = 4096;

async fn echo(mut stream: TcpStream) {
    let mut buffer = [0u8; BUFFER_BYTES];
    loop {
        let bytes = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(bytes) => bytes,
        };
        if stream.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
    }
}

fn listen_on(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    socket.listen(BACKLOG)
}

async fn serve(port: u16) -> io::Result<()> {
    let listener = listen_on(port)?;
    println!("ready");
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(echo(stream));
    }
}

fn raise_file_limit() -> io::Result<()> {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to our own rlimit.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut files) != 0 {
            return Err(io::Error::last_os_error());
        }
        files.rlim_cur = files.rlim_max;
        if libc::setrlimit(libc::RLIMIT_NOFILE, &files) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn run(port: u16) -> io::Result<()> {
    raise_file_limit()?;
    let runtime = Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(serve(port))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port = match arguments.as_slice() {
        [_, port] => port.parse::<u16>().ok().filter(|port| *port != 0),
        _ => None,
    };
    let Some(port) = port else {
        eprintln!("usage: tokio_echo PORT");
        exit(2);
    };
    if let Err(error) = run(port) {
        eprintln!("tokio_echo: {error}");
        exit(2);
    }
}
