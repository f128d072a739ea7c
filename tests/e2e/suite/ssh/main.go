// ssh ADDRESS KEY-FILE: a node's SSH server, for tests that log in to stop and start kubelet. Whoever has that private key
// may log in, as any user. A session's command runs by `sh -c`; there is no terminal.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"

	"golang.org/x/crypto/ssh"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: ssh ADDRESS KEY-FILE")
	}
	config, err := server(os.Args[2])
	if err != nil {
		log.Fatalf("key %s: %v", os.Args[2], err)
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection, config)
	}
}

// The server's own key is made at each start: a test does not check it.
func server(file string) (*ssh.ServerConfig, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, err
	}
	allowed := string(key.PublicKey().Marshal())
	_, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(own)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != allowed {
			return nil, fmt.Errorf("key %s is not allowed", ssh.FingerprintSHA256(key))
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	return config, nil
}

func serve(connection net.Conn, config *ssh.ServerConfig) {
	defer connection.Close()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		log.Print(err)
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			log.Print(err)
			return
		}
		go session(channel, requests)
	}
}

func session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		var command struct{ Line string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			request.Reply(false, nil)
			continue
		}
		request.Reply(true, nil)
		channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{run(channel, command.Line)}))
		return
	}
}

func run(channel ssh.Channel, line string) uint32 {
	program := exec.Command("sh", "-c", line)
	program.Stdout, program.Stderr = channel, channel.Stderr()
	err := program.Run()
	log.Printf("%q: %v", line, err)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return uint32(ended.ExitCode())
	default:
		return 255
	}
}
